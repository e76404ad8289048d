"""A second phrasing set for the shared after-sales benchmark: the same world in other words.

`generate.py --templates` of the benchmark takes this file in place of its own `templates.py`.
It is written apart from that one so that weights and thresholds can be fitted on worlds of other
seeds told in these words, while the benchmark's own sentences stay unseen until the end: what is
right there was not learnt by heart. No sentence here is taken from there.

`MEMORIES` and `QUESTIONS` map a key to its sentences by language, as `str.format` patterns.
`PRODUCT_WORDS` and `FAULT_WORDS` name canonical things in running text, `VALUES` lists what fills
a fact. Questions come in mixed forms on purpose: telegraphic, polite, indirect, and a statement
with the question after it. Every product reads as one thing after "my" or "the"; no sentence puts
"a" before one.
"""

from __future__ import annotations

from typing import Final

Phrases = dict[str, dict[str, list[str]]]

PRODUCT_WORDS: Final[Phrases] = {
    "Headphones": {
        "en": ["over-ear headset", "pair of over-ear headphones"],
        "zh": ["头戴耳麦", "罩耳式耳机"],
    },
    "Wireless Earbuds": {
        "en": ["pair of earbuds", "set of in-ear buds"],
        "zh": ["真无线耳机", "入耳式蓝牙耳机"],
    },
    "Bluetooth Speaker": {
        "en": ["portable speaker", "wireless loudspeaker"],
        "zh": ["蓝牙小音响", "便携音响"],
    },
    "Smartphone": {"en": ["mobile phone", "cell phone"], "zh": ["智能机", "移动电话"]},
    "Tablet": {"en": ["tablet computer", "touchscreen tablet"], "zh": ["平板机", "触屏平板"]},
    "Laptop": {"en": ["notebook computer", "notebook"], "zh": ["手提电脑", "便携电脑"]},
    "E-Reader": {"en": ["ebook reader", "e-ink reader"], "zh": ["电纸书", "墨水屏阅读器"]},
    "Smart Watch": {"en": ["smartwatch", "fitness watch"], "zh": ["智能腕表", "运动手表"]},
    "Digital Camera": {"en": ["compact camera", "photo camera"], "zh": ["卡片相机", "照相机"]},
    "Action Camera": {"en": ["action cam", "helmet camera"], "zh": ["运动摄像机", "骑行相机"]},
    "Espresso Machine": {
        "en": ["espresso maker", "barista machine"],
        "zh": ["浓缩咖啡机", "半自动咖啡机"],
    },
    "Coffee Maker": {
        "en": ["filter coffee machine", "drip coffee machine"],
        "zh": ["滴滤咖啡机", "美式咖啡壶"],
    },
    "Electric Kettle": {"en": ["kettle", "cordless kettle"], "zh": ["烧水壶", "电水壶"]},
    "Vacuum Cleaner": {"en": ["vacuum", "hoover"], "zh": ["吸尘机", "家用除尘机"]},
    "Air Purifier": {"en": ["air cleaner", "room air filter"], "zh": ["空气净化机", "除霾机"]},
    "Electric Toothbrush": {
        "en": ["rechargeable toothbrush", "sonic toothbrush"],
        "zh": ["声波牙刷", "充电牙刷"],
    },
    "Mechanical Keyboard": {
        "en": ["mech keyboard", "clicky keyboard"],
        "zh": ["机械轴键盘", "青轴键盘"],
    },
    "Gaming Mouse": {"en": ["gamer mouse", "computer mouse"], "zh": ["电竞鼠标", "游戏用鼠标"]},
    "Portable Charger": {"en": ["power bank", "battery pack"], "zh": ["移动电源", "便携充电器"]},
    "Smart Thermostat": {
        "en": ["wifi thermostat", "heating controller"],
        "zh": ["智能温控面板", "恒温控制器"],
    },
}

# Read after "it" or a product; the Chinese ones alone as well.
FAULT_WORDS: Final[Phrases] = {
    "battery": {
        "en": ["runs flat after an hour or two", "needs recharging all the time"],
        "zh": ["充满电用不了多久", "电量撑不过半天"],
    },
    "silent": {
        "en": ["only plays on one side", "went mute on the right"],
        "zh": ["只有一边响", "右声道哑了"],
    },
    "flicker": {
        "en": ["shows a jittery picture", "has a display that pulses and dims"],
        "zh": ["画面忽明忽暗", "显示老是抖动"],
    },
    "leak": {
        "en": ["drips from the bottom", "leaves a puddle underneath"],
        "zh": ["底部渗水", "机身往外滴水"],
    },
    "noise": {
        "en": ["rattles and whines when running", "has become terribly loud in use"],
        "zh": ["转起来吵得厉害", "运转时嘎吱作响"],
    },
    "stuck": {
        "en": ["has one key that stays down once pressed", "has a jammed push-button"],
        "zh": ["有个键按下去弹不起来", "按钮按了回不来"],
    },
    "offline": {
        "en": ["refuses to pair", "drops the wireless link for good"],
        "zh": ["配对总是失败", "老断线、搜不到信号"],
    },
    "hot": {
        "en": ["becomes too warm to touch", "heats up like a stove"],
        "zh": ["用一会儿就烫手", "温度高得吓人"],
    },
    "dead": {
        "en": ["stays black when you press the power button", "shows no sign of life"],
        "zh": ["按电源键没反应", "完全启动不起来"],
    },
    "port": {
        "en": ["only charges if the plug is held at an angle", "has a wobbly charge connector"],
        "zh": ["插上充电线接触不良", "充电插孔晃得厉害"],
    },
}

VALUES: Final[Phrases] = {
    "contact": {
        "en": [
            "on WhatsApp in the evening",
            "through the app chat at lunchtime",
            "by voicemail before 9 am",
        ],
        "zh": ["傍晚发微信", "午休时在App里留言", "早上九点前发语音"],
    },
    "parcel": {
        "en": [
            "in the bike shed",
            "at the bakery next door",
            "on the back porch",
            "with the neighbour in flat 3",
        ],
        "zh": ["物业前台", "楼下水果店", "消防栓箱里", "对门邻居家"],
    },
    "texting": {
        "en": [
            "on a noisy shop floor all day",
            "partly deaf",
            "asleep during the day after night shifts",
        ],
        "zh": ["上夜班白天要补觉", "车间里噪音大", "耳朵不太灵"],
    },
    "invoice": {
        "en": ["Cedar & Finch LLC", "Ostrava Textiles", "Nine Lamps Consulting"],
        "zh": ["青禾贸易", "九灯咨询", "云杉设计"],
    },
    "gift": {"en": ["nephew", "neighbour", "cousin"], "zh": ["妈妈", "侄子", "女同事"]},
    "stairs": {"en": ["3", "8", "9", "10"], "zh": ["3", "8", "9", "10"]},
    "refund_to": {
        "en": ["bank transfer", "Apple Pay", "the gift card balance"],
        "zh": ["微信零钱", "招商银行储蓄卡", "购物卡"],
    },
    "symptom": {
        "en": [
            "one of the screws is missing",
            "something loose moves around inside",
            "a rubber foot has come off",
            "the sticker on the back is peeling",
            "the paint is chipped on the underside",
            "it beeps at night for no reason",
        ],
        "zh": [
            "少了一颗螺丝",
            "里面好像有东西在滚",
            "底下的胶垫掉了一个",
            "背面的贴纸翘起来了",
            "机身蹭掉了一块漆",
            "半夜会无缘无故滴滴叫",
        ],
    },
}

MEMORIES: Final[Phrases] = {
    "fact_contact": {
        "en": [
            "{name} would rather hear from us {value}.",
            "Contact preference noted: {value}.",
            "Whenever we need {name}, we should get in touch {value}.",
        ],
        "zh": [
            "有事请{value}，这是{name}的要求。",
            "沟通偏好：{value}。",
            "{name}说平时{value}最方便。",
        ],
    },
    "fact_parcel": {
        "en": [
            "Nobody in? The driver can put packages {value}.",
            "Agreed drop-off spot for deliveries: {value}.",
            "{name} is fine with goods being deposited {value} during absences.",
        ],
        "zh": [
            "客户不在时快件搁{value}就行。",
            "无人签收的话，投放点：{value}。",
            "{name}同意东西先寄存在{value}。",
        ],
    },
    "fact_texting": {
        "en": [
            "Do not ring {name}, text only; reason given: {value}.",
            "Text-only remark in the file because {name} is {value}.",
            "Being {value}, {name} asked us to stop phoning and to use chat or mail.",
        ],
        "zh": [
            "别给客户来电：{value}，发文字就好。",
            "仅限文字联系，理由是{value}。",
            "{name}不方便接听，说{value}，改用短信或聊天。",
        ],
    },
    "fact_invoice": {
        "en": [
            "Bills for this account are issued in the name of {value}.",
            "Billing details, business name: {value}.",
            "The bookkeeper of {name} needs {value} in the company field of every bill.",
        ],
        "zh": [
            "票据上的单位填{value}。",
            "给{name}开票一律写{value}。",
            "开票资料已存，单位全称：{value}。",
        ],
    },
    "fact_gift": {
        "en": [
            "The {product} goes to {name}'s {value} for a birthday.",
            "Not for own use: {name} picked out the {product} for a {value}.",
            "Neutral packaging please, the {product} is meant to surprise {name}'s {value}.",
        ],
        "zh": [
            "{product}不是自用，打算给{value}过生日。",
            "{name}给{value}挑的{product}，想制造惊喜。",
            "聊天里提到，{product}的收礼人是{value}。",
        ],
    },
    "fact_stairs": {
        "en": [
            "Apartment sits on level {value}, no elevator: two people needed for bulky items.",
            "Delivery remark: level {value}, stairs only.",
            "No elevator where {name} lives, and it is {value} storeys up.",
        ],
        "zh": [
            "送大件注意：第{value}层，只能走楼梯。",
            "{name}家在{value}楼，老房子没装电梯。",
            "上门需步行到{value}层，无电梯。",
        ],
    },
    "fact_refund_to": {
        "en": [
            "Money that goes back to {name} is to be paid via {value}.",
            "Payout method for returns: {value}.",
            "Whenever goods are returned, {name} insists on {value}.",
        ],
        "zh": [
            "退回的钱打到{value}。",
            "{name}指定的退款去向：{value}。",
            "凡是退货，款项一律返到{value}。",
        ],
    },
    "attr_address": {
        "en": [
            "{name} has moved to {value}; parcels go there.",
            "Delivery address set to {value}.",
            "Address book updated: goods for {name} are sent to {value}.",
        ],
        "zh": [
            "给{name}寄件，送到{value}。",
            "地址簿更新：{value}。",
            "送货住址登记为{value}，客户{name}。",
        ],
    },
    "attr_phone": {
        "en": [
            "{name} can be rung on {value}.",
            "Contact number saved: {value}.",
            "Mobile entry in the file of {name} reads {value}.",
        ],
        "zh": [
            "打给{name}请拨{value}。",
            "联系号码录入：{value}。",
            "客户档案的手机一栏填了{value}。",
        ],
    },
    "attr_courier": {
        "en": [
            "Parcels for {name} travel with {value}.",
            "Carrier setting: {value}.",
            "{value} was picked as the carrier for this account.",
        ],
        "zh": [
            "{name}的件走{value}。",
            "承运商设置为{value}。",
            "发货时请选{value}，客户要求的。",
        ],
    },
    "attr_tier": {
        "en": [
            "Loyalty status of {name}: {value}.",
            "The customer card of {name} is {value}.",
            "Loyalty programme: account set to {value}.",
        ],
        "zh": [
            "{name}持有的卡：{value}。",
            "账号等级调整为{value}。",
            "{name}按{value}享受待遇。",
        ],
    },
    "coupon": {
        "en": [
            "Voucher {code} issued: workshop bill lowered by {pct} percent.",
            "Discount code {code} takes {pct}% away from the next fix.",
            "Credited to the account: a {pct}% repair voucher, code {code}.",
        ],
        "zh": [
            "已发放维修抵用券{code}，立减{pct}%。",
            "折扣码{code}：送修可用，减免{pct}%。",
            "账户到账一张{pct}%的维修折扣，券码{code}。",
        ],
    },
    "order_refund": {
        "en": [
            "{amount} went back to the buyer of {order}.",
            "Reimbursement on {order} processed, sum {amount}.",
            "Paid out {amount} after goods from {order} were returned.",
        ],
        "zh": [
            "{order}退款已处理，金额{amount}元。",
            "买家退货，{order}返还{amount}元。",
            "财务放款{amount}元，对应{order}。",
        ],
    },
    "order_delay": {
        "en": [
            "{order} missed its delivery date by {days} days.",
            "Carrier reports {order} overdue: {days} days.",
            "Sorry for the wait on {order}, it came {days} days after the date we had given.",
        ],
        "zh": [
            "{order}超时{days}天才到。",
            "物流延误：{order}，共{days}天。",
            "{order}没按时送达，拖了{days}天。",
        ],
    },
    "serial_note": {
        "en": [
            "Flashed {serial} to version {value}.",
            "{serial}: software release {value} on board.",
            "The device file of {serial} lists {value} as its firmware version.",
        ],
        "zh": [
            "{serial}刷入版本{value}。",
            "出厂登记：{serial}，系统{value}。",
            "检测到{serial}运行的是{value}版固件。",
        ],
    },
    "crm_water": {
        "en": [
            "Technician opened the {product} and found it completely dry.",
            "Moisture check on the {product}: negative.",
            "Lab report, {product}: indicator strips still white, nothing wet.",
        ],
        "zh": [
            "师傅拆开{product}看过，里头是干的。",
            "{product}防水标签未变色，排除泡水。",
            "湿度检查：{product}正常，未见水渍。",
        ],
    },
    "ugc_water": {
        "en": [
            "My {product} got soaked, you can see drops behind the cover!",
            "Two stars. The {product} is wet on the inside, I swear.",
            "Warning to others: moisture crept into this {product} within a week.",
        ],
        "zh": [
            "吐槽一下，{product}里头全是水珠！",
            "给两星，{product}内部湿了一大片。",
            "{product}用了一周就灌了水，大家避雷。",
        ],
    },
    "crm_sealed": {
        "en": [
            "Dispatch log: {product} went out with the factory seal unbroken.",
            "Nobody had opened the carton of the {product} before shipping.",
            "Outgoing check of the {product}: carton untouched, all tape in place.",
        ],
        "zh": [
            "出仓登记：{product}原封未拆，封条完整。",
            "{product}打包时外盒没有动过。",
            "发货复核，{product}纸箱胶带完好。",
        ],
    },
    "ugc_sealed": {
        "en": [
            "Someone had clearly been in the carton of this {product} before me.",
            "The tape on my {product} was slit on arrival, looks second-hand.",
            "Not new! The {product} turned up with a torn seal.",
        ],
        "zh": [
            "{product}到手胶带就是划开的，像二手货。",
            "避雷！{product}盒子明显有人动过。",
            "收货一看，{product}封口撕了。",
        ],
    },
    "crm_accessory": {
        "en": [
            "Power adapter and lead went into the parcel together with the {product}.",
            "{product} picked complete: adapter yes, lead yes.",
            "Checked at packing: the {product} had its power supply and lead.",
        ],
        "zh": [
            "{product}配件核对：电源头有，数据线有。",
            "拣货员确认{product}随箱附了充电头和线。",
            "{product}附件齐全，含充电头、数据线。",
        ],
    },
    "ugc_accessory": {
        "en": [
            "Where is the power adapter?! My {product} arrived all alone.",
            "Disappointing: the {product} came without any lead or adapter.",
            "Minus one star, the plug and the lead for the {product} were missing.",
        ],
        "zh": [
            "{product}居然没给充电头，线都要自己买。",
            "差评，{product}只有机器，啥配件都没。",
            "拆开{product}没见到电源头和数据线，扣一星。",
        ],
    },
    "complaint": {
        "en": [
            "{name} is unhappy: the {product} {fault}.",
            "According to {name}, the {product} {fault}.",
            "Message from {name} saying the {product} {fault}.",
        ],
        "zh": [
            "{name}来电，说{product}{fault}。",
            "{name}很不满意，{product}{fault}。",
            "接到{name}留言：{product}{fault}。",
        ],
    },
    "it_after_repair": {
        "en": [
            "You sent it back to me fixed, and now {symptom}.",
            "Since the repair there is something new: {symptom}.",
            "Not quite happy with the fix: {symptom}. It was fine in that respect before.",
        ],
        "zh": [
            "送修的那个到手了，发现{symptom}。",
            "修好寄回来以后又有新情况：{symptom}。",
            "上次返修完，{symptom}，送修前可没这毛病。",
        ],
    },
    "it_usage": {
        "en": [
            "Couldn't do without it on my commute.",
            "Everyone in the family has a go at it after dinner.",
            "It sits next to me and gets used from morning to night.",
        ],
        "zh": ["出差路上全靠它。", "晚饭后全家轮流用。", "就放在手边，从早用到晚。"],
    },
    "repair_note": {
        "en": [
            "Job done on the {product}: new {part} fitted, bill of {cost}.",
            "Fixed and ready for pick-up: {product}, {part} exchanged, customer paid {cost}.",
            "Our technician sorted out the {part} of the {product}; total {cost}.",
        ],
        "zh": [
            "{product}已修复，{part}换新，计{cost}元。",
            "师傅处理完{product}的{part}，账单{cost}元。",
            "工单结案：{product}，动了{part}，实收{cost}元。",
        ],
    },
    "purchase_note": {
        "en": [
            "Sold on {bought}: {product}, order number {order}, factory guarantee up to {until}.",
            (
                "{order} dated {bought} was handed over; the {product} in it carries the basic "
                "warranty through {until}."
            ),
            (
                "Customer got the {product} with {order} (placed {bought}). Manufacturer cover "
                "lapses on {until}."
            ),
        ],
        "zh": [
            "{bought}成交{product}，单号{order}，原厂质保至{until}。",
            "{order}已签收，内含{product}（{bought}购），基础保修截止{until}。",
            "客户{bought}入手{product}，见{order}，厂家保修有效期到{until}。",
        ],
    },
    "intake_note": {
        "en": [
            "The {product} was handed in; its owner says it {fault}.",
            'New job: {product}, described as "it {fault}".',
            "{product} arrived at the service centre, apparently it {fault}.",
        ],
        "zh": [
            "服务网点收到{product}，客户称{fault}。",
            "新工单：{product}，报修原因“{fault}”。",
            "{product}寄修，说是{fault}。",
        ],
    },
    "warranty_note": {
        "en": [
            "Additional cover for the {product} added, runs through {date}.",
            "Customer paid for longer protection on the {product}; last day is {date}.",
            "Prolonged warranty taken out for the {product}, valid through {date}.",
        ],
        "zh": [
            "{product}加保成功，有效期至{date}。",
            "客户为{product}办了延保服务，{date}截止。",
            "{product}的延保合同生效，最后一天是{date}。",
        ],
    },
    "works": {
        "en": [
            "Since the latest firmware, the LED on the {product} flashes.",
            "I installed the new version and the lamp of my {product} keeps pulsing.",
            "New software on the {product}: its LED winks at me.",
        ],
        "zh": [
            "升级固件后{product}的灯一闪一闪。",
            "装了新版本，{product}那个小灯一直在闪烁。",
            "{product}升完级，指示灯开始闪。",
        ],
    },
    "works_not": {
        "en": [
            "Since the latest firmware, the LED on the {product} no longer flashes.",
            "I installed the new version and the lamp of my {product} stopped pulsing.",
            "New software on the {product}: its LED never winks.",
        ],
        "zh": [
            "升级固件后{product}的灯不再一闪一闪。",
            "装了新版本，{product}那个小灯没有再闪烁。",
            "{product}升完级，指示灯就不闪了。",
        ],
    },
    "review": {
        "en": [
            "Top marks, the {product} turned up within two days.",
            "Decent value. I'd get the same {product} for my parents.",
            "Bought on offer: the {product} looks duller than on the website.",
            "The {product} does what it should, nothing fancy.",
            "Manual of the {product} could be clearer, otherwise happy.",
        ],
        "zh": [
            "{product}到货神速，给满分。",
            "这价位的{product}值了，打算给爸妈也买一个。",
            "{product}实物比网页上暗一些。",
            "{product}中规中矩，够用。",
            "{product}说明书写得不清楚，其他满意。",
        ],
    },
    "smalltalk": {
        "en": [
            "Hi there, busy day on your side?",
            "Cheers, enjoy your evening!",
            "What a storm we had last night.",
            "That was quick, much appreciated.",
            "One moment please, someone is at the door.",
            "Merry Christmas to everyone at the desk!",
            "Alright, I'll think it over.",
            "You made me laugh, thanks.",
            "Are you a robot or a human?",
            "Bye for now.",
        ],
        "zh": [
            "在吗？",
            "辛苦啦，祝你今晚早点下班！",
            "昨晚这边打雷打得好凶。",
            "回得真快，给你点赞。",
            "稍等，门口有人敲门。",
            "中秋快乐呀！",
            "行，那我再考虑考虑。",
            "笑死我了。",
            "你是机器人还是真人？",
            "先这样，回头聊。",
        ],
    },
    "policy_return_window": {
        "en": [
            "You have {n} days after the parcel arrives to send electronic goods back.",
            "Deadline for sending back electronics: {n} days from receipt.",
            "Buyers of electronic goods may change their mind for {n} days once the goods arrive.",
        ],
        "zh": [
            "数码产品收货后{n}日内支持退货。",
            "退货时限：数码类商品收到货起{n}日。",
            "数码商品不满意，收货{n}日之内都能退。",
        ],
    },
    "policy_extended_purchase": {
        "en": [
            "Customers may add longer cover up to {n} days after they receive the goods.",
            "Deadline for adding the optional warranty extension: {n} days from receipt.",
            "Add-on protection is on offer for {n} days once the goods arrive, not later.",
        ],
        "zh": [
            "延长保修可以补买，时限为收货后{n}日。",
            "收货超过{n}日就不能再办延保服务。",
            "加保须在到货{n}日之内办理。",
        ],
    },
    "policy_price_protection": {
        "en": [
            (
                "Should an item become cheaper in the first {n} days after the order, we pay back "
                "the gap."
            ),
            "Lowest-price promise: {n} days from the order date, the gap is reimbursed.",
            "Customers who paid more can claim the gap for {n} days after ordering.",
        ],
        "zh": [
            "下单{n}日之内商品跌价，差额照补。",
            "保价期{n}日，自下单起算，买贵补差额。",
            "保价规则：下单后{n}日里变便宜了，可申请返还差额。",
        ],
    },
    "policy_extended_after_repair": {
        "en": [
            (
                "Repairs by our own service do not end the add-on cover; should the same defect "
                "come back, it is included for another {n} months."
            ),
            (
                "Extra cover continues once our service centre has fixed a unit, plus {n} months "
                "on that very defect."
            ),
            (
                "Having a unit fixed by us leaves the prolonged guarantee untouched and adds {n} "
                "months for the defect that was mended."
            ),
        ],
        "zh": [
            "在授权网点修过不影响延长保修，修好的毛病另加{n}个月质保。",
            "返修之后延保照常有效，相同问题额外质保{n}个月。",
            "官方网点处理过的机器，延保接着算；修过的毛病{n}个月里复发免费。",
        ],
    },
    "policy_parts_warranty": {
        "en": [
            (
                "New components fitted by our service centre carry {n} days of cover, counted from "
                "completion."
            ),
            "Spare parts: {n} days guarantee after the job is done.",
            "If a component we fitted breaks in the first {n} days, we exchange it for free.",
        ],
        "zh": [
            "新换的零部件修好后包{n}日。",
            "更换部件另有{n}日质保，从结单那天算起。",
            "网点装上的零件{n}日之内坏了免费再换。",
        ],
    },
    "policy_repeat_repair": {
        "en": [
            "After {n} repairs in twelve months the customer gets a replacement.",
            "Swap rule: {n} workshop visits of the same unit in twelve months.",
            (
                "Whoever had to send in the same unit {n} times in twelve months receives a "
                "brand-new one."
            ),
        ],
        "zh": [
            "十二个月里返修达到{n}次，直接更换。",
            "换机条件：一年修{n}次以上（含）。",
            "同款机器年内修了{n}回，给客户换全新的。",
        ],
    },
    "policy_loan_device": {
        "en": [
            "If we keep a unit for over {n} days, the customer may borrow a substitute.",
            "Temporary substitutes are lent out once a repair exceeds {n} days.",
            "Substitute units: available from day {n} of a repair that drags on.",
        ],
        "zh": [
            "修理时间超出{n}日，可以借一个替代机先用。",
            "送修满{n}日还没好，客户有权申请代用机。",
            "代用机规则：工期大于{n}日才借。",
        ],
    },
    "policy_turnaround": {
        "en": [
            "Expect your unit back from us in roughly {n} business days.",
            "Target time for a fix: {n} business days.",
            "Jobs should be completed {n} business days after intake at the latest.",
        ],
        "zh": [
            "修理周期大约{n}个工作日。",
            "正常情况下收件后{n}个工作日能修好寄出。",
            "网点承诺{n}个工作日交付。",
        ],
    },
    "policy_liquid_damage": {
        "en": [
            "The basic {n}-month guarantee does not pay for units that got wet.",
            "Spilled a drink? That is excluded from the {n} months of factory cover.",
            "Water in a unit: not part of the {n}-month basic cover, the customer pays.",
        ],
        "zh": [
            "泡水、泼溅造成的故障，{n}个月基础质保不管。",
            "基础质保{n}个月，进水的要自费。",
            "人为进水属于除外责任，{n}个月原厂质保不赔。",
        ],
    },
    "policy_invoice_rule": {
        "en": [
            "Bills with a company name are issued on demand for {n} days after the order.",
            "Ask for your bill in the first {n} days, later it cannot be issued.",
            "Deadline for billing requests: {n} days.",
        ],
        "zh": [
            "开发票请在下单{n}日之内提出。",
            "补开票据的时限为{n}日。",
            "下单超过{n}日，系统不再受理开票。",
        ],
    },
    "policy_points": {
        "en": [
            "Bonus points are good for {n} days.",
            "Unused bonus points expire {n} days after they were earned.",
            "Spend bonus points in time: {n} days, then they are gone.",
        ],
        "zh": [
            "积分有效期为{n}日。",
            "攒的积分{n}日内不用就清零。",
            "积分过了{n}日作废，请及时兑换。",
        ],
    },
    "policy_pickup": {
        "en": [
            "Once a return is filed, a driver comes by in at most {n} days.",
            "Return parcels are picked up at the door, {n} days at the latest.",
            "Home pick-up for returns takes up to {n} days.",
        ],
        "zh": [
            "提交退货单以后，最晚{n}日有人上门收件。",
            "上门取退货一般{n}日之内安排。",
            "退货免寄：{n}日之内师傅来拿。",
        ],
    },
}

QUESTIONS: Final[Phrases] = {
    "single_contact": {
        "en": [
            "Preferred channel and time for messages to me?",
            "Could you please check your notes and tell me which channel and hours I asked for?",
            "You once wrote down when I'm free and how to get hold of me. What does it say?",
            "I wonder whether you remember how I like to hear from you.",
        ],
        "zh": [
            "找我一般用什么方式、什么时间？",
            "麻烦查下，我留的沟通偏好是哪种？",
            "之前登记过几点找我方便、走什么渠道，能念给我听吗？",
            "想问一下，你们有事会通过什么途径通知我？",
        ],
    },
    "single_parcel": {
        "en": [
            "Drop-off spot for deliveries when the flat is empty?",
            (
                "I'm travelling next week. Would you mind telling me which safe place you noted "
                "for my packages?"
            ),
            "Nobody will open the door tomorrow. Where does the driver put my stuff?",
            "I can't remember which place I agreed to for deliveries during my absence.",
        ],
        "zh": [
            "没人签收时，快件给我搁哪儿？",
            "我明天出差，到时候东西会被放到什么位置？",
            "想确认一下我登记的代收点。",
            "请问备注里写的无人在家投放地点是哪里呢？",
        ],
    },
    "single_texting": {
        "en": [
            "No phoning me: what reason is on file?",
            "Please look up why your agents are supposed to text rather than ring me.",
            "I know I told you not to ring me. Do you still know why?",
            "I'd like to understand what is behind the text-only remark in my file.",
        ],
        "zh": [
            "备注写着别打我电话，原因是啥？",
            "麻烦看看我当初为什么让你们发短信、不要来电？",
            "我不方便接听是出于什么情况，你们有记吗？",
            "想了解下我档案里仅限文字联系的理由。",
        ],
    },
    "single_invoice": {
        "en": [
            "Billing company?",
            "For my tax return I need to know which firm you bill. Could you look that up?",
            "Accounting asks under what business name you issue my bills. What do I tell them?",
            "Can you tell me what stands in the company field of my billing details?",
        ],
        "zh": [
            "开票信息里的单位名称，帮我核对一下。",
            "财务问我票据上写的是哪个公司，你们记录的是什么？",
            "开发票用的哪个单位？",
            "请问我的税票是以哪家企业名义开的？",
        ],
    },
    "single_gift": {
        "en": [
            "One of the things I ordered was meant for somebody else. Who was that?",
            "Remind me who the gift was for, please.",
            "Recipient of the birthday surprise I ordered?",
            "I seem to have told you that I was giving something away; would you know to whom?",
        ],
        "zh": [
            "我拿来送礼的那件，收礼的人是谁来着？",
            "帮我回忆下，当时我说东西要送哪位？",
            "之前提过买一样东西当礼物，对方是我什么人？",
            "请问我下单时说的送礼对象是哪一位？",
        ],
    },
    "single_stairs": {
        "en": [
            "Heavy delivery coming up: what do your notes say about my storey and the stairs?",
            "Apartment level? Elevator yes or no?",
            "Would the delivery team have to climb stairs at my place, and how far up?",
            "Could you check whether you noted the level of my flat and if an elevator exists?",
        ],
        "zh": [
            "大件送上门要爬几层？",
            "麻烦查下备注，我这栋装没装电梯、在第几层。",
            "师傅送货到我家得走楼梯吗？几层？",
            "想问一下你们登记的楼层和电梯情况。",
        ],
    },
    "single_refund_to": {
        "en": [
            "When you pay me back, which account or method do you use?",
            "Payout method for my returns?",
            "Something is going back next week. Could you confirm the way I get my money?",
            "I'd like to know what I asked for regarding money you give back to me.",
        ],
        "zh": [
            "钱退回来会打到哪个账户？",
            "我要退一件东西，款项按我的要求走哪里？",
            "麻烦确认下我指定的退款去向。",
            "退的钱默认返到什么地方？",
        ],
    },
    "temporal_address": {
        "en": [
            "Which street and house number do you currently deliver to?",
            "If I order something tonight, where does it go?",
            "Current delivery address?",
            (
                "I moved a while ago and want to be sure that you have the right place. Where do "
                "you send my parcels these days?"
            ),
        ],
        "zh": [
            "现在给我寄东西会寄到哪条街？",
            "我搬过家，麻烦核对一下目前用的送货地址。",
            "今天下单的话，货送到什么地方？",
            "帮我报一下现用地址",
        ],
    },
    "temporal_phone": {
        "en": [
            "Under what number would your agent ring me today?",
            "My mobile number, as saved with you now?",
            "Please read out the digits you would dial to reach me.",
            (
                "I changed my SIM card at some point. Could you tell me which contact number is "
                "saved now?"
            ),
        ],
        "zh": [
            "你们现在打哪个号找我？",
            "我换过号，系统里目前留的联系方式是哪一个号码？",
            "麻烦念一下档案里当前的手机号码。",
            "想核对下最新的联系号码",
        ],
    },
    "temporal_courier": {
        "en": [
            "Who brings my parcels at the moment, which delivery company?",
            "Carrier currently set for me?",
            "May I ask which carrier is selected in my settings right now?",
            "My next package is due soon. Whose van should I look out for?",
        ],
        "zh": [
            "目前我的件都走哪家物流？",
            "下次发货会用什么快递公司？",
            "想问下现在给我设置的承运商是谁。",
            "麻烦查下我最新选的送货公司",
        ],
    },
    "temporal_tier": {
        "en": [
            "Which status do I have in your loyalty programme right now?",
            "Loyalty status today?",
            "Your shop has a loyalty scheme. Where do I stand in it at present?",
            "I'd be glad to know what rank my customer card shows now.",
        ],
        "zh": [
            "我的会员卡目前是哪一档？",
            "麻烦查下这个账号眼下享受哪一级待遇。",
            "会员体系里我到哪个档次了？",
            "想知道我现阶段的会员身份。",
        ],
    },
    "temporal_coupon": {
        "en": [
            "Any voucher code left that would lower a workshop bill?",
            "Something of mine broke. Is there a discount code I could redeem for the fix?",
            "Which voucher hasn't expired yet?",
            "Would you mind checking if a repair discount is waiting for me, and what the code is?",
        ],
        "zh": [
            "我名下还有没过期的维修折扣吗？券码多少？",
            "要送修了，有没有可以抵扣的券？",
            "修东西能打折不？我那个优惠码是啥",
            "麻烦看下账户里哪个维修抵用券还在有效期。",
        ],
    },
    "history_address": {
        "en": [
            "Which place did my parcels go to prior to the latest change of address?",
            "Old delivery address, the one right before today's?",
            (
                "A friend still lives where you used to deliver to me. Could you tell me that "
                "former address?"
            ),
            "I'd like to know where you sent my goods until I gave you the new address.",
        ],
        "zh": [
            "我改地址前，货都寄到哪儿？",
            "旧的送货地址还查得到吗？要最近一次更换前的那个。",
            "请问上一回登记的住址是哪条路？",
            "有个包裹可能寄去了老地方，麻烦告诉我原先留的地址。",
        ],
    },
    "history_phone": {
        "en": [
            "Old mobile number, the last one before the update?",
            "I got a new SIM card and forgot the digits I had until then. Do you still have them?",
            "Which number did you dial until I gave you the new one?",
            "Would you happen to know the contact number that was replaced most recently?",
        ],
        "zh": [
            "更新前留的是哪个手机号码？",
            "旧号忘了，能帮我翻一下之前登记的那个吗？",
            "上一个联系电话发我下",
            "请问最近被替换掉的那个号码是多少呢？",
        ],
    },
    "history_courier": {
        "en": [
            "Who carried my parcels until I switched?",
            "Former delivery company?",
            "I switched carriers some time ago. Which one was it up to then?",
            "Could you look up what carrier was set for me earlier, prior to the present choice?",
        ],
        "zh": [
            "没改之前我的件由哪家送？",
            "原来选的物流公司叫什么？",
            "我中途换过承运商，想知道换掉的是哪一家。",
            "麻烦查下上一次设置的快递是谁家的。",
        ],
    },
    "history_tier": {
        "en": [
            "Which loyalty status was I on until it changed?",
            "Former rank in the loyalty scheme?",
            "My customer card got changed. What did it say up to then?",
            "I'm curious what status I held in your programme just before the present one.",
        ],
        "zh": [
            "升降级之前，我的会员卡属于哪一档？",
            "上一个会员身份是什么？",
            "这个账号调整过等级，调整前是哪一级？",
            "想问下我原来享受的是什么卡的待遇。",
        ],
    },
    "exact_refund": {
        "en": [
            "{order}: refund amount?",
            "What sum came back to me on order number {order_digits}?",
            "I returned part of {order_bare}. What did you pay back?",
            "Could you please check what I was reimbursed for purchase {order}?",
        ],
        "zh": [
            "{order}退款金额？",
            "麻烦查下{order_bare}这笔返了我多少。",
            "单号{order_digits}给我退回几块钱？",
            "我想核实{order}那单到账的退款数额。",
        ],
    },
    "exact_delay": {
        "en": [
            "{order}, days overdue?",
            (
                "Order number {order_digits} didn't show up on time. How far past the promised "
                "date was it?"
            ),
            (
                "I'd like to complain about the wait for {order_bare}; by how much did it miss its "
                "date?"
            ),
            "Can you tell me what the delay on purchase {order} amounts to?",
        ],
        "zh": [
            "{order}比说好的日子晚到多久？",
            "单号{order_digits}延误了几日？",
            "麻烦核实{order_bare}超时多长时间",
            "说好的时间没到货，{order}一共拖了多少天？",
        ],
    },
    "exact_serial": {
        "en": [
            "{serial}: software version?",
            "The sticker says {serial}. Which release did you install on that unit?",
            "Could you look up the firmware version of the device with the number {serial}?",
            "I want to update {serial} but don't know what version it has now.",
        ],
        "zh": [
            "{serial}现在是哪个系统版本？",
            "机身编号{serial}，帮忙看下固件号。",
            "想给{serial}升级，请问目前刷的是几点几？",
            "麻烦查下S/N {serial}对应的软件版本。",
        ],
    },
    "conflict_water": {
        "en": [
            "Moisture inside the {product}, yes or no?",
            "Somebody wrote that the {product} got wet. What did your check find?",
            "Could you tell me whether my {product} has suffered water damage?",
            "Before I open a claim: is my {product} dry on the inside?",
        ],
        "zh": [
            "我那个{product}内部到底湿没湿？",
            "有人说{product}泡过水，检测是怎么讲的？",
            "麻烦确认下{product}有没有液体渗进去。",
            "想走保修，先问问{product}里头算不算进水？",
        ],
    },
    "conflict_sealed": {
        "en": [
            "Factory seal of the {product}: intact at dispatch?",
            "Somebody may have used my {product} before me. Did it leave your warehouse unopened?",
            (
                "I would like to know if the packaging of the {product} was untouched when you "
                "sent it out."
            ),
            "Did you send out my {product} with an unbroken seal?",
        ],
        "zh": [
            "{product}寄出来的时候，封条还完整吗？",
            "我怀疑{product}是二手的，出仓前有人开过箱吗？",
            "麻烦核实{product}外盒发出时是否原封未动。",
            "请问我那件{product}发出去之前拆没拆过？",
        ],
    },
    "conflict_accessory": {
        "en": [
            "Power adapter and lead supplied with the {product}?",
            "I can't find the power supply of my {product}. Was one packed?",
            "Could you verify what was put in with the {product}, adapter and lead included?",
            "Should there have been a plug and a lead along with my {product}?",
        ],
        "zh": [
            "{product}的电源头和数据线当时装进去了吗？",
            "我没找到{product}的充电头，你们发货有放吗？",
            "麻烦查下{product}的配件是不是齐的。",
            "想问{product}盒子里该不该有充电头和线？",
        ],
    },
    "isolation": {
        "en": [
            "My name is {name}. Which trouble with my {product} do you have on record?",
            "{name} speaking. I got in touch about the {product}; what was it about?",
            "Hello, {name} again. Could you repeat what I told you was wrong with the {product}?",
            "What does the message from {name} about the {product} say?",
        ],
        "zh": [
            "你好，{name}。之前我说{product}哪里不对劲来着？",
            "这边是{name}，麻烦查一下我那个{product}报的毛病。",
            "{name}名下的{product}，登记过什么故障？",
            "我叫{name}，想问{product}的投诉记录里写了啥？",
        ],
    },
    "policy_return_window": {
        "en": [
            "{product}, purchased {month}: still returnable?",
            "I don't like the {product} I ordered in {month}. May I send it back?",
            (
                "Would it be possible to hand back the {product} I got in {month}, or has the "
                "deadline passed?"
            ),
            "I wonder if I'm too late to get my money back for the {product} of {month}.",
        ],
        "zh": [
            "{product}是{month}入手的，现在退还来得及不？",
            "不想要{month}下单的那个{product}了，可以退吗？",
            "麻烦看下{month}那单{product}还支不支持退。",
            "请问我{month}买入的{product}，退货时限到了没有？",
        ],
    },
    "policy_extended_purchase": {
        "en": [
            "Extra cover for the {product} ({month}): can I still get it?",
            "I didn't take additional protection with the {product} in {month}. May I add it now?",
            "Could I sign up for longer coverage on the {product} that I ordered in {month}?",
            (
                "Until when may one prolong the guarantee of the {product} purchased in {month}, "
                "and am I still in time?"
            ),
        ],
        "zh": [
            "{month}下单的{product}当时没买延长保修，现在补得上吗？",
            "想给{product}续个保，{month}买的，行不行？",
            "请问{month}那个{product}还有资格办理延保服务吗？",
            "{product}（{month}购）加保截止了没？",
        ],
    },
    "policy_price_protection": {
        "en": [
            (
                "The price of the {product} went down after I ordered it in {month}. Will you "
                "reimburse the gap?"
            ),
            "{product} from {month}, price drop: money back?",
            (
                "I saw the same {product} on sale. Mine is from {month}; am I entitled to a "
                "partial refund?"
            ),
            "Might I ask if the lowest-price promise covers the {product} ordered in {month}?",
        ],
        "zh": [
            "刚看到{product}便宜了，我{month}下的单，差额补不补？",
            "{month}买贵了的{product}可以申请保价吗？",
            "麻烦问下，{month}那个{product}跌价给退钱不？",
            "{product}（{month}购）价格保护过期没",
        ],
    },
    "cross_extended": {
        "en": [
            "Now that the workshop has worked on my {product}, does the additional cover continue?",
            (
                "My {product} went through a repair. I'd like to know if the prolonged guarantee "
                "is void now."
            ),
            "Extra warranty on the repaired {product}: valid?",
            (
                "{name} had the {product} fixed. Could you check whether the add-on protection "
                "continues to apply?"
            ),
        ],
        "zh": [
            "修了一回{product}，之前加买的延长保修会不会作废？",
            "我叫{name}，{product}返修过，延保期还算数吗？",
            "麻烦查下，{product}维修之后延保能不能接着用。",
            "想问一下修过的{product}，延保服务还在不在？",
        ],
    },
    "cross_part": {
        "en": [
            (
                "You put a new component into my {product}. Does it come with a guarantee, and has "
                "that run out?"
            ),
            "Guarantee on the spare part in the {product}: until when?",
            "If the component fitted in my {product} breaks again, would you exchange it for free?",
            (
                "Could you tell me what coverage applies to the piece that was exchanged in my "
                "{product}?"
            ),
        ],
        "zh": [
            "{product}里新装的那个部件，坏了还包修吗？",
            "给{product}换的件质保到哪天？",
            "麻烦查下{product}更换部件的保修还剩多久。",
            "上次{product}换了个零部件，如果再坏要不要自己掏钱？",
        ],
    },
    "cross_month": {
        "en": [
            "{product}, {month}: state of the repair and remaining coverage?",
            (
                "I own more than one, but I mean the {product} I ordered in {month}. What did the "
                "workshop do, and am I covered?"
            ),
            (
                "Could you give me the repair history and the guarantee status of the {product} "
                "purchased in {month}?"
            ),
            (
                "What happened at the service centre with the {product} I got in {month}, and does "
                "any coverage remain?"
            ),
        ],
        "zh": [
            "我说的是{month}下单的{product}，维修进展和保修情况麻烦都说一下。",
            "{month}那个{product}送去修过，修的啥？现在还保不保？",
            "查{product}，{month}购入，要维修记录和质保状态",
            "请问{month}买入的{product}返修到哪一步了，质保剩多长？",
        ],
    },
    "cross_it": {
        "en": [
            "After the fix I told you about something else with the {product}. What was it?",
            "New defect on the {product} following the fix: my report?",
            (
                "Could you remind me which remark I made once I had my {product} back from the "
                "workshop?"
            ),
            (
                "I still wasn't satisfied with the {product} after you had fixed it. Do you recall "
                "my reason?"
            ),
        ],
        "zh": [
            "{product}修好寄回后，我又提了个什么毛病？",
            "返修后的{product}，我还抱怨过啥？",
            "麻烦翻一下记录，{product}维修完我反馈的新情况是哪样。",
            "拿到修好的{product}我不太满意，当时说的是哪里不行？",
        ],
    },
    "cross_fault": {
        "en": [
            (
                "I brought one of my things to you since it {fault}. Which one was that, and does "
                "a guarantee still apply?"
            ),
            (
                "Which of my purchases went to the workshop after I told you it {fault}? Please "
                "include its coverage."
            ),
            (
                "Something I own {fault}, or at least it did until you fixed it. What was it and "
                "how long is it covered?"
            ),
            'Repair with the remark "it {fault}": device and warranty status?',
        ],
        "zh": [
            "有样东西{fault}，拿给你们修过，是哪一件？质保还在不在？",
            "之前送修时说的是“{fault}”，对应哪个产品，还能保吗？",
            "麻烦查一下报修原因是{fault}的那件，保修情况也说下。",
            "当时{fault}，后来修好了，请问是什么东西，保到什么时候？",
        ],
    },
    "cross_repeat": {
        "en": [
            (
                "The {product} keeps breaking and you have fixed it several times. Am I entitled "
                "to a replacement?"
            ),
            "Number of repairs on the {product}, and does that qualify for a swap?",
            "I'm tired of sending the {product} in again and again. Could you swap it?",
            (
                "Please count how many times the workshop had my {product} and tell me if a "
                "brand-new one is due."
            ),
        ],
        "zh": [
            "{product}老坏，来回修，达到换机条件了吗？",
            "麻烦数一下{product}返修了多少回，能不能直接给个新的？",
            "这{product}都修烦了，按规定是不是该给我换掉？",
            "请问{product}的维修次数满足更换标准没有？",
        ],
    },
    "cross_latest": {
        "en": [
            "Newest repair job: item and coverage?",
            "What did I hand in last, and does the guarantee still apply to it?",
            (
                "Could you check the last thing your workshop received from me and whether it is "
                "covered?"
            ),
            (
                "I sent something to the service centre not long ago. What was it, and until when "
                "is it covered?"
            ),
        ],
        "zh": [
            "上一回拿去修的是哪样东西？质保到什么时候？",
            "刚送过去修的那件，还包修吗？",
            "麻烦查下离现在最近的维修单是哪个产品、保不保。",
            "想问一下我最后一次报修的机器，还在质保里头吗？",
        ],
    },
    "cross_loan": {
        "en": [
            "Substitute while the {product} is away?",
            (
                "I need something to bridge the time until the {product} is fixed. Could you lend "
                "me one?"
            ),
            (
                "The {product} has been at your service centre for a while. Am I entitled to a "
                "temporary substitute?"
            ),
            "Would it be possible to borrow another {product} until mine is back?",
        ],
        "zh": [
            "{product}还在你们那修着，有没有临时替换的能用？",
            "修{product}这段日子我没得用，可以先借一个给我吗？",
            "请问{product}维修期间提供代用的吗？",
            "麻烦看下我送修的{product}够不够申请替代机。",
        ],
    },
    "none_product": {
        "en": [
            "Which component did you exchange in my {product}?",
            "Has the service centre finished with my {product}?",
            "I'd like to know how long my {product} is covered.",
            "Could you look up the order my {product} came with?",
        ],
        "zh": [
            "我那个{product}换过什么零件？",
            "{product}修好没有？",
            "请问我的{product}质保到几号？",
            "麻烦查下{product}是哪一单买的。",
        ],
    },
    "none_order": {
        "en": [
            "What sum did you reimburse for {order}?",
            "What held up number {order_digits}?",
            "I'd like to know the reason {order_bare} didn't come on time.",
            "{order}: any money returned?",
        ],
        "zh": [
            "{order}那单返给我多少？",
            "单号{order_digits}怎么拖这么久？",
            "麻烦查下{order_bare}延误的原因。",
            "想知道{order}退回来的数目",
        ],
    },
    "none_topic": {
        "en": [
            "What's my dog called?",
            "Which school do my kids attend?",
            "I mentioned my licence plate once. Could you read it to me?",
            "Who recommended your website to me?",
            "Engraving text I picked?",
            "I wonder when my gym contract runs out.",
            "Would you kindly tell me what time my hairdresser expects me?",
            "Which language course did I sign up for?",
        ],
        "zh": [
            "我家猫叫什么？",
            "麻烦查下我的车牌号。",
            "我是听谁推荐来你们这儿的？",
            "我孩子上几年级了？",
            "想问下我的健身卡什么时候到期。",
            "我选的刻字内容是啥",
            "请问我报名的讲座在几号？",
            "我对什么食物过敏来着？",
        ],
    },
}
