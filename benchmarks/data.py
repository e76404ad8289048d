"""A made-up shop in Chinese and English, the same for the same sizes and seed.

Every user has orders with a device each, and some devices a repair and warranties; memories tell
what happened to them. Nothing is read from anywhere, so that figures of two machines compare.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from ecphoria.model import EntityInput, EntityRef, MemoryInput, RelationInput
from ecphoria_schema.domain import Kind, Language

# "Now" of the data and of the engine: filters and ages are the same in every run.
NOW: Final = datetime(2026, 3, 1, 12, tzinfo=UTC)

ENTITIES: Final = "entities.jsonl"
RELATIONS: Final = "relations.jsonl"
MEMORIES: Final = "memories.jsonl"

_SHARED_EVERY: Final = 25
_EN_EVERY: Final = 3

_NAMES: Final[Mapping[Language, tuple[str, ...]]] = {
    "zh": ("张伟", "王芳", "李娜", "刘洋", "陈静", "杨帆", "赵磊", "黄敏", "周杰", "吴霞"),
    "en": ("Emma Clark", "Liam Moore", "Olivia Hall", "Noah Young", "Ava King", "Ethan Wright"),
}
_PRODUCTS: Final = (
    ("iphone-15", "iPhone 15", "苹果手机15", "phone", 5999.0),
    ("pixel-9", "Pixel 9", "谷歌手机9", "phone", 4999.0),
    ("galaxy-s24", "Galaxy S24", "三星手机S24", "phone", 5699.0),
    ("thinkpad-x1", "ThinkPad X1", "联想笔记本X1", "laptop", 9999.0),
    ("macbook-air", "MacBook Air", "苹果笔记本", "laptop", 8999.0),
    ("airpods-pro", "AirPods Pro", "苹果耳机", "audio", 1899.0),
    ("kindle-12", "Kindle 12", "电子书阅读器", "reader", 899.0),
    ("dyson-v15", "Dyson V15", "戴森吸尘器", "home", 4490.0),
    ("mi-band-9", "Mi Band 9", "小米手环9", "wearable", 249.0),
    ("gopro-13", "GoPro 13", "运动相机13", "camera", 3298.0),
)
_FAULTS: Final[Mapping[Language, tuple[str, ...]]] = {
    "zh": ("屏幕碎裂", "电池发烫", "无法开机", "扬声器异响", "充电口进水", "摄像头黑屏"),
    "en": ("cracked screen", "overheating battery", "dead board", "noisy speaker", "wet port"),
}
_PLACES: Final[Mapping[Language, tuple[str, ...]]] = {
    "zh": ("上海浦东", "北京朝阳", "广州天河", "成都高新", "杭州西湖", "武汉江汉"),
    "en": ("Leeds", "Bristol", "Austin", "Denver", "Toronto", "Dublin"),
}

# What is told about a device, a repair or an order: kind, type of the entity, text.
_TOLD: Final[Mapping[Language, tuple[tuple[Kind, str, str], ...]]] = {
    "zh": (
        ("episodic", "Device", "{name}说{product}出现{fault},第{n}次来电时希望尽快送修。"),
        ("episodic", "Repair", "{place}服务中心检修了{product},更换配件{n}号,故障是{fault}。"),
        ("episodic", "Order", "订单{order}的快递在{place}停留了{n}小时,{name}催过物流。"),
        ("semantic", "User", "{name}希望用短信联系,编号{n}的回访请不要打电话。"),
        ("semantic", "Device", "{product}的延保在维修{n}天后继续有效,剩余期限不变。"),
        ("episodic", "Order", "{name}问订单{order}能否退款{n}元,因为买的{product}降价了。"),
        ("semantic", "User", "{name}的收货地址是{place}{n}号,周末在家收货。"),
        ("procedural", "Device", "处理{product}的{fault}:先备份,再检测{n}分钟,最后登记维修单。"),
    ),
    "en": (
        ("episodic", "Device", "{name} reports {fault} on the {product}, call number {n}."),
        ("episodic", "Repair", "The {place} service centre replaced part {n} of the {product}."),
        ("episodic", "Order", "The parcel of order {order} waited {n} hours in {place}."),
        ("semantic", "User", "{name} prefers text messages; follow-up {n} must not be a call."),
        ("semantic", "Device", "The extended warranty of the {product} goes on {n} days later."),
        ("episodic", "Order", "{name} wants a refund of {n} for order {order}, a {product}."),
        ("semantic", "User", "The shipping address of {name} is {n} High Street, {place}."),
        ("procedural", "Device", "For {fault} on a {product}: back up, test {n} minutes, log it."),
    ),
}
_SHARED: Final[Mapping[Language, tuple[str, ...]]] = {
    "zh": (
        "政策{n}:{product}售出后七天内可以退货,需保留包装。",
        "流程{n}:{product}延保理赔要先提交维修单和发票。",
    ),
    "en": (
        "Policy {n}: a {product} may be returned within seven days in its box.",
        "Procedure {n}: a warranty claim for a {product} needs the repair report and invoice.",
    ),
}
# What customers and services write themselves: values of attributes, which replace each other,
# and dialogues, which are cut into facts; {late} is an order that no file knows.
_SAID: Final[Mapping[Language, tuple[tuple[Kind, str], ...]]] = {
    "zh": (
        ("semantic", "我的收货地址改为{place}{n}号"),
        ("semantic", "以后请用{channel}联系我"),
        ("semantic", "我喜欢{product}"),
        ("episodic", "订单{order}已发货"),
        ("episodic", "订单{late}的发票抬头请写{name},{place}{n}号。"),
        (
            "episodic",
            (
                "用户：我的订单#{order}怎么还没发货？客服：已发出，物流单号SF{n:08d}。"
                "用户：物流官网查不到啊。客服：我帮您联系{place}仓库核查"
            ),
        ),
    ),
    "en": (
        ("semantic", "My new shipping address is {n} High Street, {place}"),
        ("semantic", "Please contact me by {channel}"),
        ("semantic", "I love the {product}"),
        ("episodic", "Order {order} has been shipped"),
        ("episodic", "The invoice of order {late} goes to {name}, {n} High Street, {place}."),
        (
            "episodic",
            (
                "Customer: Why has my order #{order} not been shipped yet? "
                "Agent: It has been shipped, the tracking number is SF{n:08d}. "
                "Customer: The site of the courier does not know it. "
                "Agent: I will ask the warehouse in {place} about it."
            ),
        ),
    ),
}
_CHANNELS: Final[Mapping[Language, tuple[str, ...]]] = {
    "zh": ("电话", "短信", "微信", "邮件"),
    "en": ("phone", "text message", "wechat", "email"),
}
# Of ten memories that a shop writes as it comes, so many name no entity beside the text, and so
# many are what somebody said.
_SILENT, _BY_SOMEBODY = 3, 2

_ASKED: Final[Mapping[Language, tuple[str, ...]]] = {
    "zh": (
        "{name}买的{product}维修后还能享受延保吗",
        "订单{order}现在到哪里了,快递怎么还没到",
        "我的{product}{fault},以前修过吗",
        "订单{order}可以退款吗",
        "怎么联系{name}比较合适,收货地址是哪里",
        "{product}的{fault}应该怎么处理",
    ),
    "en": (
        "Is the {product} of {name} still under extended warranty after the repair?",
        "Where is order {order}, why has the parcel not arrived?",
        "My {product} has a {fault}, was it repaired before?",
        "Can I get a refund for order {order}?",
        "How should we contact {name}, and what is the shipping address?",
        "How do I handle {fault} on a {product}?",
    ),
}


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is made.

    Attributes:
        memories: Memories in all, those that every user shares included.
        questions: Questions in all.
        seed: Another seed makes other data.
        as_it_comes: Half of the memories say what they are about by their text alone, if at all;
            some replace each other, wait for an entity, or are cut into facts. Else each is plain
            and says what it is about, so that recall is measured on the same data in all versions.
    """

    users: int = 100
    memories: int = 2_000
    questions: int = 100
    seed: int = 7
    as_it_comes: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """A question and whose it is."""

    user_id: str
    question: str


@dataclass(slots=True)
class Dataset:
    """A shop and what is asked about it."""

    entities: list[EntityInput] = field(default_factory=list)
    relations: list[RelationInput] = field(default_factory=list)
    memories: list[MemoryInput] = field(default_factory=list)
    questions: list[Asked] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Owned:
    """A device of a user, with the order it came by and the repair it had."""

    order: EntityRef
    device: EntityRef
    repair: EntityRef | None
    product: int


@dataclass(frozen=True, slots=True)
class _User:
    ref: EntityRef
    name: str
    lang: Language
    owned: tuple[_Owned, ...]


def make_dataset(sizes: Sizes) -> Dataset:
    """Return the shop of these sizes."""
    # cryptography is not the point, sameness is
    rng = random.Random(sizes.seed)  # noqa: S311
    made, users = _shop(rng, sizes)
    made.memories += _memories(rng, users, sizes)
    for number in range(sizes.questions):
        user = users[number * 7 % len(users)]
        texts = _ASKED[user.lang]
        text = _filled(rng, texts[number % len(texts)], user, rng.choice(user.owned), number)
        made.questions.append(Asked(user.ref.id, text))
    return made


def _shop(rng: random.Random, sizes: Sizes) -> tuple[Dataset, list[_User]]:
    made = Dataset()
    for id_, name, name_zh, category, price in _PRODUCTS:
        props = {"name": name, "name_zh": name_zh, "category": category, "price": price}
        made.entities.append(EntityInput("Product", id_, props, NOW))
    return made, [_user(made, rng, number) for number in range(sizes.users)]


def _memories(rng: random.Random, users: list[_User], sizes: Sizes) -> Iterator[MemoryInput]:
    for number in range(sizes.memories):
        if number % _SHARED_EVERY == 0:
            yield _shared_memory(rng, number)
        elif sizes.as_it_comes:
            yield _as_it_comes(rng, rng.choice(users), number)
        else:
            yield _memory(rng, rng.choice(users), number)


def _user(made: Dataset, rng: random.Random, number: int) -> _User:
    lang: Language = "en" if number % _EN_EVERY == 0 else "zh"
    name = rng.choice(_NAMES[lang])
    user = EntityRef("User", f"u-{number:05d}")
    props: dict[str, object] = {
        "name": name,
        "city": rng.choice(_PLACES[lang]),
        "level": rng.choice(("gold", "silver", "basic")),
        "registered_at": _ago(rng, 800, 1_500),
    }
    made.entities.append(EntityInput(user.type, user.id, props, NOW))
    owned = tuple(
        _order(made, rng, user, lang, f"{number:05d}{place}") for place in range(rng.randint(1, 4))
    )
    return _User(user, name, lang, owned)


def _order(
    made: Dataset, rng: random.Random, user: EntityRef, lang: Language, number: str
) -> _Owned:
    product = rng.randrange(len(_PRODUCTS))
    product_id, title, title_zh, _, price = _PRODUCTS[product]
    placed = _ago(rng, 30, 700)
    order = EntityRef("Order", f"20{number}")
    device = EntityRef("Device", f"dev-{number}")
    made.entities += [
        EntityInput(
            order.type,
            order.id,
            {"status": "delivered", "placed_at": placed, "total": price, "currency": "CNY"},
            NOW,
        ),
        EntityInput(
            device.type,
            device.id,
            {
                "name": title_zh if lang == "zh" else title,
                "serial": f"SN{rng.randrange(10**9):09d}",
                "activated_at": placed + timedelta(days=3),
            },
            NOW,
        ),
    ]
    made.relations += [
        RelationInput("PLACED", user, order),
        RelationInput("CONTAINS", order, device),
        RelationInput("INSTANCE_OF", device, EntityRef("Product", product_id)),
    ]
    for kind, days in (("standard", 365), ("extended", 1_095))[: rng.randint(1, 2)]:
        warranty = EntityRef("Warranty", f"war-{number}-{kind}")
        props: dict[str, object] = {
            "kind": kind,
            "status": "active",
            "starts_at": placed,
            "ends_at": placed + timedelta(days=days),
        }
        made.entities.append(EntityInput(warranty.type, warranty.id, props, NOW))
        made.relations.append(RelationInput("COVERED_BY", device, warranty))
    repair = None
    if rng.random() < 0.5:  # noqa: PLR2004 - every other device
        repair = EntityRef("Repair", f"rep-{number}")
        opened = placed + timedelta(days=20)
        props = {
            "status": "closed",
            "fault": rng.choice(_FAULTS[lang]),
            "opened_at": opened,
            "closed_at": opened + timedelta(days=5),
            "under_warranty": rng.random() < 0.7,  # noqa: PLR2004 - most are
        }
        made.entities.append(EntityInput(repair.type, repair.id, props, NOW))
        made.relations.append(RelationInput("HAS_REPAIR", device, repair))
    return _Owned(order, device, repair, product)


def _memory(rng: random.Random, user: _User, number: int) -> MemoryInput:
    kind, type_, text = rng.choice(_TOLD[user.lang])
    owned = rng.choice(user.owned)
    about = {
        "User": user.ref,
        "Order": owned.order,
        "Device": owned.device,
        "Repair": owned.repair or owned.device,
    }[type_]
    occurred = _ago(rng, 0, 365)
    return MemoryInput(
        _filled(rng, text, user, owned, number),
        user.ref.id,
        id=memory_id(number),
        kind=kind,
        source=rng.choice(("crm", "dialogue", "ugc")),
        occurred_at=occurred,
        valid_from=occurred,
        valid_until=NOW + timedelta(days=rng.randint(10, 400)) if rng.random() < 0.3 else None,  # noqa: PLR2004 - some
        importance=rng.randint(3, 9) / 10,
        about=(about,),
    )


def _as_it_comes(rng: random.Random, user: _User, number: int) -> MemoryInput:
    kind = number % 10
    if kind >= _SILENT + _BY_SOMEBODY:
        return _memory(rng, user, number)
    if kind >= _BY_SOMEBODY:
        return replace(_memory(rng, user, number), about=())
    said, text = rng.choice(_SAID[user.lang])
    occurred = _ago(rng, 0, 365)
    return MemoryInput(
        _filled(rng, text, user, rng.choice(user.owned), number),
        user.ref.id,
        id=memory_id(number),
        kind=said,
        source=rng.choice(("crm", "dialogue")),
        occurred_at=occurred,
        valid_from=occurred,
    )


def memory_id(number: int) -> str:
    """Return the id of the n-th memory, from 0; as texts they sort by number."""
    return f"mem-{number:06d}"


def _shared_memory(rng: random.Random, number: int) -> MemoryInput:
    lang: Language = "en" if rng.randrange(_EN_EVERY) == 0 else "zh"
    id_, title, title_zh, *_ = rng.choice(_PRODUCTS)
    text = rng.choice(_SHARED[lang])
    occurred = _ago(rng, 30, 365)
    return MemoryInput(
        text.format(product=title_zh if lang == "zh" else title, n=number),
        None,
        id=memory_id(number),
        kind="procedural",
        source="crm",
        occurred_at=occurred,
        valid_from=occurred,
        importance=0.8,
        about=(EntityRef("Product", id_),),
    )


def _filled(rng: random.Random, text: str, user: _User, owned: _Owned, number: int) -> str:
    _, title, title_zh, *_ = _PRODUCTS[owned.product]
    return text.format(
        name=user.name,
        product=title_zh if user.lang == "zh" else title,
        fault=rng.choice(_FAULTS[user.lang]),
        place=rng.choice(_PLACES[user.lang]),
        order=owned.order.id,
        n=number + 1,
        late=f"91{number:07d}",
        channel=rng.choice(_CHANNELS[user.lang]) if "{channel}" in text else "",
    )


def _ago(rng: random.Random, least: int, most: int) -> datetime:
    return NOW - timedelta(days=rng.randint(least, most), minutes=rng.randrange(1_440))


# --- files ---------------------------------------------------------------------------------


def write_files(made: Dataset, directory: Path) -> dict[str, str]:
    """Write the data set as files of the exchange format; return their paths by name."""
    return _written(
        directory,
        {
            ENTITIES: map(_entity_line, made.entities),
            RELATIONS: map(_relation_line, made.relations),
            MEMORIES: map(_memory_line, made.memories),
        },
    )


def stream_files(sizes: Sizes, directory: Path, moved: Callable[[], None]) -> dict[str, str]:
    """Make a shop straight into files, however many memories it has; return their paths by name.

    Args:
        sizes: Of what; there are no questions in files.
        directory: Where to.
        moved: Called after every memory.
    """
    rng = random.Random(sizes.seed)  # noqa: S311 - as above
    made, users = _shop(rng, sizes)

    def lines() -> Iterator[object]:
        for item in _memories(rng, users, sizes):
            yield _memory_line(item)
            moved()

    return _written(
        directory,
        {
            ENTITIES: map(_entity_line, made.entities),
            RELATIONS: map(_relation_line, made.relations),
            MEMORIES: lines(),
        },
    )


def _written(directory: Path, lines: Mapping[str, Iterable[object]]) -> dict[str, str]:
    directory.mkdir(parents=True, exist_ok=True)
    for name, values in lines.items():
        with (directory / name).open("w", encoding="utf-8") as file:
            for value in values:
                file.write(json.dumps(value, ensure_ascii=False) + "\n")
    return {name: str(directory / name) for name in lines}


def _entity_line(item: EntityInput) -> dict[str, object]:
    props = {name: _plain(value) for name, value in item.props.items()}
    return {
        "type": item.type,
        "id": item.id,
        "props": props,
        "observed_at": _plain(item.observed_at),
    }


def _relation_line(item: RelationInput) -> dict[str, object]:
    return {"type": item.type, "from": _ref(item.from_), "to": _ref(item.to)}


def _memory_line(item: MemoryInput) -> dict[str, object]:
    values: dict[str, object] = {
        "id": item.id,
        "user_id": item.user_id,
        "text": item.text,
        "kind": item.kind,
        "source": item.source,
        **({} if item.importance is None else {"importance": item.importance}),
        "occurred_at": _plain(item.occurred_at),
        "valid_from": _plain(item.valid_from),
        "about": [_ref(ref) for ref in item.about],
    }
    if item.valid_until is not None:
        values["valid_until"] = _plain(item.valid_until)
    return values


def _ref(ref: EntityRef) -> dict[str, str]:
    return {"type": ref.type, "id": ref.id}


def _plain(value: object) -> object:
    return value.isoformat() if isinstance(value, datetime) else value
