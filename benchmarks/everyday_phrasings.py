"""A third phrasing set for the shared after-sales benchmark: everyday words, plainly asked.

Its writer saw the benchmark's own `templates.py`, and neither `phrasings.py` nor the words of the
domain file. For ``generate.py --templates``, as `phrasings.py`.
"""

from __future__ import annotations

Phrases = dict[str, dict[str, list[str]]]

PRODUCT_WORDS: Phrases = {
    "Headphones": {"en": ["over-ear headphones", "headset"], "zh": ["头戴耳麦", "大耳罩耳机"]},
    "Wireless Earbuds": {
        "en": ["true wireless earphones", "in-ear buds"],
        "zh": ["真无线耳机", "入耳式无线耳机"],
    },
    "Bluetooth Speaker": {
        "en": ["wireless speaker", "portable Bluetooth speaker"],
        "zh": ["蓝牙音响", "无线音箱"],
    },
    "Smartphone": {"en": ["mobile phone", "cell phone"], "zh": ["手机", "智能机"]},
    "Tablet": {"en": ["tablet computer", "tablet PC"], "zh": ["平板", "触屏平板"]},
    "Laptop": {"en": ["notebook computer", "laptop computer"], "zh": ["手提电脑", "笔记本"]},
    "E-Reader": {"en": ["ebook reader", "e-book reader"], "zh": ["电纸书", "墨水屏阅读器"]},
    "Smart Watch": {"en": ["smartwatch"], "zh": ["智能腕表", "运动手表"]},
    "Digital Camera": {"en": ["digicam", "compact camera"], "zh": ["数码照相机", "卡片机"]},
    "Action Camera": {"en": ["action cam", "sports camera"], "zh": ["运动摄像机", "运动摄影机"]},
    "Espresso Machine": {
        "en": ["espresso maker", "espresso coffee machine"],
        "zh": ["浓缩咖啡机", "意式浓缩机"],
    },
    "Coffee Maker": {
        "en": ["drip coffee machine", "filter coffee machine"],
        "zh": ["滴滤咖啡机", "美式咖啡机"],
    },
    "Electric Kettle": {"en": ["kettle", "cordless kettle"], "zh": ["电水壶", "烧水壶"]},
    "Vacuum Cleaner": {"en": ["vacuum", "hoover"], "zh": ["吸尘机", "家用吸尘器"]},
    "Air Purifier": {"en": ["air cleaner", "purifier"], "zh": ["空净", "空气清洁器"]},
    "Electric Toothbrush": {
        "en": ["powered toothbrush", "sonic toothbrush"],
        "zh": ["声波牙刷", "充电式牙刷"],
    },
    "Mechanical Keyboard": {
        "en": ["mech keyboard", "mechanical gaming keyboard"],
        "zh": ["机械轴键盘", "键盘"],
    },
    "Gaming Mouse": {"en": ["gamer mouse", "mouse"], "zh": ["电竞鼠标", "鼠标"]},
    "Portable Charger": {"en": ["power bank", "battery pack"], "zh": ["移动电源", "便携充电器"]},
    "Smart Thermostat": {
        "en": ["thermostat", "Wi-Fi thermostat"],
        "zh": ["智能恒温器", "温控面板"],
    },
}

# Read after "because it ..." or "因为...".
FAULT_WORDS: Phrases = {
    "battery": {
        "en": ["runs out of power too quickly", "barely holds a charge"],
        "zh": ["续航太差", "充满电没多久就没电了"],
    },
    "silent": {
        "en": ["plays audio on only one side", "went mute on one channel"],
        "zh": ["有一边不响", "只有单边出声"],
    },
    "flicker": {
        "en": ["has a display that keeps flashing", "shows a flickering picture"],
        "zh": ["显示屏闪个不停", "画面老是闪烁"],
    },
    "leak": {"en": ["drips water", "is not watertight any more"], "zh": ["往外渗水", "底下滴水"]},
    "noise": {
        "en": ["has a noisy motor", "sounds like a drill when the motor runs"],
        "zh": ["马达声音很大", "电机嗡嗡响得厉害"],
    },
    "stuck": {
        "en": ["has a jammed button", "has a key that stays down"],
        "zh": ["按钮按下去弹不起来", "有个键卡死了"],
    },
    "offline": {
        "en": ["keeps failing to connect", "will not pair or go online"],
        "zh": ["老是断线、连接失败", "怎么都联不上网"],
    },
    "hot": {
        "en": ["overheats in use", "becomes burning hot"],
        "zh": ["用一会儿就烫手", "发热严重"],
    },
    "dead": {
        "en": ["won't turn on", "stays dead when the power button is pressed"],
        "zh": ["按电源键没反应", "无法启动"],
    },
    "port": {
        "en": ["has a wobbly charging port", "has a charging port in which the plug won't hold"],
        "zh": ["充电接口松动", "充电插头插不稳"],
    },
}

VALUES: Phrases = {
    "contact": {
        "en": [
            "via e-mail in the evening",
            "with a call in the morning",
            "on WhatsApp on Saturdays",
        ],
        "zh": ["工作日晚上发邮件", "上午打手机", "周六发微信"],
    },
    "parcel": {
        "en": ["at the front desk", "in the garden shed", "with the neighbour in flat 3"],
        "zh": ["小区物业前台", "菜鸟驿站", "对门邻居家"],
    },
    "texting": {
        "en": ["almost deaf", "on night shifts and asleep by day"],
        "zh": ["耳朵听不清", "上夜班白天要睡觉"],
    },
    "invoice": {
        "en": ["Redwood Consulting", "Sunrise Bakery Ltd", "Atlas Design"],
        "zh": ["晨光贸易有限公司", "红杉咨询", "云帆设计"],
    },
    "gift": {"en": ["mother", "nephew", "colleague"], "zh": ["妈妈", "外甥", "同事"]},
    "stairs": {"en": ["3", "4", "5", "6"], "zh": ["3", "4", "5", "6"]},
    "refund_to": {
        "en": ["the bank account", "the debit card used for payment", "a gift card balance"],
        "zh": ["微信零钱", "银行卡", "礼品卡余额"],
    },
    "symptom": {
        "en": [
            "it makes a clicking sound every few minutes",
            "one of the screws is missing",
            "the casing has a small dent",
            "there is a gap along the edge of the lid",
            "it gives off a burnt smell",
            "the status LED never goes off",
        ],
        "zh": [
            "隔几分钟就咔哒响一下",
            "少了一颗螺丝",
            "机身上有个小凹坑",
            "盖子边上有条缝",
            "闻起来有焦味",
            "状态灯关不掉",
        ],
    },
}

MEMORIES: Phrases = {
    "fact_contact": {
        "en": [
            "{name} would rather hear from us {value}.",
            "Preferred channel: get in touch with {name} {value}.",
        ],
        "zh": ["有事找{name}的话,请{value}。", "{name}说最方便的联络方式是{value}。"],
    },
    "fact_parcel": {
        "en": [
            "Nobody in? The driver can drop packages {value}.",
            "When the customer is out, deliveries go {value}.",
        ],
        "zh": ["没人在家时快件请交到{value}。", "客户不在的话,快递送到{value}就行。"],
    },
    "fact_texting": {
        "en": [
            "Customer is {value}, so no phone calls please, send a message.",
            "No calls! Only text this customer, who is {value}.",
        ],
        "zh": ["客户{value},有事发消息,别打电话。", "请勿致电,该客户{value},发短信或留言即可。"],
    },
    "fact_invoice": {
        "en": [
            "Please bill everything to {value}.",
            "Billing name for this customer's invoices: {value}.",
        ],
        "zh": ["开发票请写{value}。", "这位客户的发票单位为{value}。"],
    },
    "fact_gift": {
        "en": [
            "The customer got the {product} for a {value} as a gift.",
            "Not for own use: the {product} is meant as a present to a {value}.",
        ],
        "zh": ["客户提到这个{product}是给{value}买的礼物。", "{product}不是自用,要送给{value}。"],
    },
    "fact_stairs": {
        "en": [
            (
                "Customer's flat is on level {value}, there is no elevator, so big items go "
                "up the stairs."
            ),
            "Walk-up building without elevator; the flat is on storey {value}.",
        ],
        "zh": [
            "客户家在{value}楼,是步梯房,大件要人工抬上去。",
            "老小区无电梯,送货要爬到{value}楼。",
        ],
    },
    "fact_refund_to": {
        "en": [
            "Any money back should be sent to {value}.",
            "{name} asked us to return money to {value}.",
        ],
        "zh": ["有退款的话打到{value}。", "{name}希望退的钱回到{value}。"],
    },
    "attr_address": {
        "en": ["Deliveries for {name} go to {value}.", "Delivery address on record: {value}."],
        "zh": ["{name}的快递寄到{value}。", "系统里的送货地址为{value}。"],
    },
    "attr_phone": {
        "en": ["{name} can be called at {value}.", "Customer's mobile: {value}."],
        "zh": ["{name}的电话号码为{value}。", "客户预留手机:{value}。"],
    },
    "attr_courier": {
        "en": [
            "Parcels for this customer are to be sent with {value}.",
            "Preferred carrier is {value}.",
        ],
        "zh": ["客户要求发{value}。", "配送承运商设为{value}。"],
    },
    "attr_tier": {
        "en": ["{name} holds {value} status in the loyalty programme.", "Loyalty tier: {value}."],
        "zh": ["{name}目前属于{value}。", "该客户的会员档次为{value}。"],
    },
    "coupon": {
        "en": [
            "Voucher {code} was issued: {pct}% discount on a repair bill.",
            "With code {code} the customer pays {pct}% less for servicing.",
        ],
        "zh": ["已发放维修代金券{code},修理费优惠{pct}%。", "凭券码{code}维修可打折,减免{pct}%。"],
    },
    "order_refund": {
        "en": [
            "We paid back {amount} on order {order}.",
            "Money back for {order}: {amount}, confirmed by accounting.",
        ],
        "zh": ["{order}这一单已退回{amount}元。", "财务确认:订单{order}返还客户{amount}元。"],
    },
    "order_delay": {
        "en": [
            "Shipment {order} is running {days} days behind schedule.",
            "Order {order} was held up in transit, {days} days overdue.",
        ],
        "zh": ["{order}这一单配送延误{days}天。", "订单{order}物流延迟,比预计晚到{days}天。"],
    },
    "serial_note": {
        "en": [
            "S/N {serial}: firmware version is {value}.",
            "The device with serial no. {serial} runs software build {value} (firmware).",
        ],
        "zh": ["机身编号{serial},当前固件{value}。", "{serial}这台机器的固件已刷到{value}版。"],
    },
    "crm_water": {
        "en": ["Technician opened the {product}: dry inside, no moisture damage found."],
        "zh": ["技术员拆检{product}:内部干燥,未发现进水。"],
    },
    "ugc_water": {
        "en": ["My review: the {product} got wet, I can see water under the cover."],
        "zh": ["买家评论:{product}里面有水,肯定是进水了。"],
    },
    "crm_sealed": {
        "en": ["Dispatch log: {product} went out in an unopened package with the seal intact."],
        "zh": ["发货登记:{product}原封未拆,封签完整。"],
    },
    "ugc_sealed": {
        "en": ["My review: somebody had opened the package of the {product} before me, seal torn."],
        "zh": ["买家评论:{product}到手时盒子就是开过的,封签撕掉了。"],
    },
    "crm_accessory": {
        "en": ["Shipping checklist for the {product}: power adapter and cord were packed."],
        "zh": ["出库清单:{product}随箱附充电头和数据线。"],
    },
    "ugc_accessory": {
        "en": ["My review: the {product} arrived without a power adapter or cord."],
        "zh": ["买家评论:买的{product}没给充电头,数据线也没有。"],
    },
    "complaint": {
        "en": [
            "{name} got in touch, unhappy because the {product} {fault}.",
            "Ticket from {name}: says the {product} {fault}.",
        ],
        "zh": ["{name}来电抱怨{product}{fault}。", "{name}留言说{product}出毛病了,{fault}。"],
    },
    "it_after_repair": {
        "en": [
            "I picked it up from service and now {symptom}.",
            "Since it was fixed, {symptom}. That wasn't the case earlier.",
        ],
        "zh": [
            "你们修好寄回来的那台,现在{symptom}。",
            "刚拿到返修的那台,发现{symptom},送修前可没这样。",
        ],
    },
    "it_usage": {
        "en": [
            "I take it along to the office all the time.",
            "On Saturdays the whole family wants it.",
        ],
        "zh": ["那台我上班路上天天带着。", "一到休息日全家都要用它。"],
    },
    "repair_note": {
        "en": [
            "{product} is fixed: new {part} fitted, bill {cost}.",
            "Service job on the {product} done, {part} dealt with, customer paid {cost}.",
        ],
        "zh": [
            "{product}已修好,换了{part},共{cost}元。",
            "{product}检修结束,{part}已处理,实收{cost}元。",
        ],
    },
    "purchase_note": {
        "en": [
            (
                "{product} from order {order} (placed {bought}) handed over; manufacturer's "
                "warranty "
                "runs to {until}."
            ),
            "Sale of {bought}, order {order}: {product}, basic warranty valid through {until}.",
        ],
        "zh": [
            "{bought}成交的订单{order},商品{product}已签收,基础质保截至{until}。",
            "客户{bought}下单{order}买了{product},原厂保修有效期至{until}。",
        ],
    },
    "intake_note": {
        "en": [
            "Service centre took in the {product}; customer says it {fault}.",
            "New repair ticket, {product}: it {fault}.",
        ],
        "zh": ["售后已收到{product},客户描述{fault}。", "新建{product}报修工单,问题是{fault}。"],
    },
    "warranty_note": {
        "en": [
            "Customer added extra warranty cover to the {product}, valid through {date}.",
            "Warranty extension on the {product} runs to {date}.",
        ],
        "zh": ["客户给{product}加买了延长保修,有效至{date}。", "{product}的延保截止日为{date}。"],
    },
    "works": {
        "en": ["Since the latest update the power LED on the {product} flashes."],
        "zh": ["升级完以后,{product}的电源指示灯一闪一闪的。"],
    },
    "works_not": {
        "en": ["Since the latest update the power LED on the {product} no longer flashes."],
        "zh": ["升级完以后,{product}的电源指示灯不再闪了。"],
    },
    "review": {
        "en": [
            "Love the {product}, and it arrived sooner than expected.",
            "Decent {product} for the money, I'd order it again.",
            "The {product} looks slightly darker than on the website.",
        ],
        "zh": [
            "{product}很满意,发货神速。",
            "这个价位的{product}值了,下次还买。",
            "{product}实物比网页上颜色暗一些。",
        ],
    },
    "smalltalk": {
        "en": [
            "Hi there, hope you're having a good day.",
            "Cheers, enjoy your evening!",
            "What a storm we had last night.",
            "Really kind of you to explain it so well.",
            "Hold on, someone is at the door.",
            "Merry Christmas to everyone there!",
            "Alright, I'll look into it and write again.",
            "Lol, you made my day.",
        ],
        "zh": [
            "你好呀,辛苦了。",
            "多谢,祝你今天顺利!",
            "今天外面风真大。",
            "讲得很清楚,感谢。",
            "稍等,门口有人敲门。",
            "中秋快乐!",
            "行,我先看看,晚点再说。",
            "哈哈哈,你真逗。",
        ],
    },
    "policy_return_window": {
        "en": ["Customers may send electronic goods back up to {n} days after they arrive."],
        "zh": ["数码电器类商品收货后{n}日内支持退货。"],
    },
    "policy_extended_purchase": {
        "en": ["Customers can add a warranty extension up to {n} days after the item arrives."],
        "zh": ["收货{n}日内可补购延长保修服务。"],
    },
    "policy_price_protection": {
        "en": [
            (
                "Price guarantee: should an item get cheaper in the first {n} days after it was "
                "bought, we pay back the difference."
            )
        ],
        "zh": ["价保规则:下单{n}日内商品降价的,可申请补差价。"],
    },
    "policy_extended_after_repair": {
        "en": [
            (
                "A repair by our own service does not end the extended warranty; the same "
                "defect is "
                "covered for a further {n} months."
            )
        ],
        "zh": ["在官方售后修过的设备,延长保修照常生效,同样的毛病另保{n}个月。"],
    },
    "policy_parts_warranty": {
        "en": [
            "Spare parts fitted during a repair carry {n} days of guarantee once it is finished."
        ],
        "zh": ["修理时换上的零件,从修好当天算起保{n}天。"],
    },
    "policy_repeat_repair": {
        "en": ["If the same unit needs {n} repairs in twelve months, we swap it for a new one."],
        "zh": ["一台机器12个月内修过{n}次的,可更换全新机。"],
    },
    "policy_loan_device": {
        "en": ["If servicing lasts over {n} days, the customer gets a replacement unit to borrow."],
        "zh": ["修理时间多于{n}天时,可向客户出借一台代用机。"],
    },
    "policy_turnaround": {
        "en": ["Service jobs are normally completed in {n} business days or less."],
        "zh": ["送修的机器通常{n}个工作日之内可以修好。"],
    },
    "policy_liquid_damage": {
        "en": ["The basic {n}-month warranty excludes damage caused by water or other liquids."],
        "zh": ["基础质保{n}个月,但进水造成的损坏不予保修。"],
    },
    "policy_invoice_rule": {
        "en": ["Customers may ask for an invoice during the {n} days after they buy."],
        "zh": ["下单后{n}日内都能补开发票。"],
    },
    "policy_points": {
        "en": ["Bonus points expire {n} days after they are earned."],
        "zh": ["会员积分有效期{n}天,过期清零。"],
    },
    "policy_pickup": {
        "en": [
            "Items being sent back are picked up no later than {n} days after the customer asks."
        ],
        "zh": ["退货申请提交后,{n}日之内会有快递员来取。"],
    },
}

QUESTIONS: Phrases = {
    "single_contact": {
        "en": [
            "Which way of getting in touch with me did I ask for?",
            "If you need to contact me, how did I say you should do it?",
            "What's my preferred contact channel and time?",
        ],
        "zh": [
            "你们有事找我应该用什么方式?",
            "我跟你们说过的首选联络方式是哪种?",
            "什么时候、用什么方式找我最方便?",
        ],
    },
    "single_parcel": {
        "en": [
            "When I'm out, where does the driver put my deliveries?",
            "What drop-off place did I give you for packages when nobody is in?",
        ],
        "zh": ["我不在家,快件该送到哪儿?", "没人收件的话,我让你们把快递放到什么地方?"],
    },
    "single_texting": {
        "en": [
            "Why shouldn't you call me but text me?",
            "I asked for messages rather than phone calls. What was my reason?",
        ],
        "zh": ["我为什么让你们发消息而不要打电话?", "我说过别给我打电话,原因是什么?"],
    },
    "single_invoice": {
        "en": [
            "What company name do you put on my invoices?",
            "Under which business name am I billed?",
        ],
        "zh": ["我开发票用的是哪个单位名称?", "我的发票要写哪个公司?"],
    },
    "single_gift": {
        "en": [
            "One of the things I bought was a gift. Who was it for?",
            "Who was going to receive the present I bought from you?",
        ],
        "zh": ["我买来送礼的东西是给谁的?", "我说过有件商品是礼物,要送谁?"],
    },
    "single_stairs": {
        "en": [
            "What storey is my flat on, and does the house have an elevator?",
            "Do your delivery people have to take the stairs at my place, and up to which floor?",
        ],
        "zh": ["送货到我家要爬几楼,有没有电梯?", "我家在第几层,是不是步梯?"],
    },
    "single_refund_to": {
        "en": [
            "When I get money back, which account or card should it be sent to?",
            "Where did I ask you to send my refunds?",
        ],
        "zh": ["给我退钱的话应该打到哪里?", "我要求退款退回哪个账户?"],
    },
    "temporal_address": {
        "en": [
            "Which delivery address do you have for me right now?",
            "Where do my parcels get delivered to at the moment?",
        ],
        "zh": ["我的快递现在寄到哪个地址?", "目前系统里我的送货地址是哪儿?"],
    },
    "temporal_phone": {
        "en": [
            "What's my current mobile number in your system?",
            "At which number can I be called now?",
        ],
        "zh": ["我现在留的手机号码是什么?", "你们目前打哪个电话能找到我?"],
    },
    "temporal_courier": {
        "en": [
            "Which carrier are my parcels sent with these days?",
            "What's my preferred delivery company at present?",
        ],
        "zh": ["我的包裹目前发什么快递?", "现在给我配送的是哪家物流公司?"],
    },
    "temporal_tier": {
        "en": [
            "What loyalty status do I have now?",
            "Which tier of the loyalty programme am I in?",
        ],
        "zh": ["我现在是哪一档会员?", "我目前的会员身份是什么级别?"],
    },
    "temporal_coupon": {
        "en": [
            "Is there a repair voucher of mine that hasn't expired?",
            "Which discount code can I use for a repair at the moment?",
        ],
        "zh": ["我手上还有没过期的维修代金券吗?", "我目前修东西可以用哪个优惠券码?"],
    },
    "history_address": {
        "en": [
            "What was my old delivery address?",
            "Which address did my parcels go to until I changed it?",
        ],
        "zh": ["我改地址之前,快递寄到哪里?", "我原来的送货地址是什么?"],
    },
    "history_phone": {
        "en": [
            "What was my old mobile number?",
            "Before I changed my number, what was it?",
        ],
        "zh": ["我原来留的手机号是哪个?", "我的旧电话号码是什么?"],
    },
    "history_courier": {
        "en": [
            "Which carrier brought my parcels before I switched?",
            "Who was my former delivery company?",
        ],
        "zh": ["我更换之前,包裹发的是什么快递?", "我原先选的物流公司是哪家?"],
    },
    "history_tier": {
        "en": [
            "Which loyalty tier was I in before this one?",
            "What was my old status in the loyalty programme?",
        ],
        "zh": ["我上一个会员级别是什么?", "调整之前我属于哪一档会员?"],
    },
    "exact_refund": {
        "en": [
            "How much money did I get back for {order}?",
            "What amount did you pay back on {order_bare}?",
        ],
        "zh": ["{order}这一单给我退了多少?", "单号{order_bare}返还的金额是多少?"],
    },
    "exact_delay": {
        "en": [
            "How many days behind schedule is {order}?",
            "My shipment {order_bare} is overdue. By how many days?",
        ],
        "zh": ["{order}这一单延误了多少天?", "单号{order_bare}比预计晚到几天?"],
    },
    "exact_serial": {
        "en": [
            "What firmware version is on the device with S/N {serial}?",
            "Tell me the firmware of {serial}, please.",
        ],
        "zh": ["机身编号{serial}现在是哪版固件?", "帮我查一下{serial}的固件版本。"],
    },
    "conflict_water": {
        "en": [
            "Was any water damage or moisture found in my {product}?",
            "Is the inside of my {product} wet or dry?",
        ],
        "zh": ["我那个{product}内部有没有水?", "我的{product}查出来是不是进水了?"],
    },
    "conflict_sealed": {
        "en": [
            "Did my {product} leave the warehouse in an unopened package?",
            "Was the seal on my {product}'s packaging intact when you sent it?",
        ],
        "zh": ["我的{product}寄出时是没拆封的吗?", "我买的{product}发出来的时候封签完整吗?"],
    },
    "conflict_accessory": {
        "en": [
            "Was a power adapter packed with my {product}?",
            "Did you ship the charging cord and adapter together with my {product}?",
        ],
        "zh": ["我买的{product}配了充电头和数据线没有?", "{product}发货时有没有附带充电头?"],
    },
    "isolation": {
        "en": [
            "My name is {name}. What was the trouble I had with the {product}?",
            "{name} speaking. What did I tell you was wrong with my {product}?",
        ],
        "zh": [
            "我叫{name},之前我说{product}出了什么毛病?",
            "这里是{name},我抱怨过{product}哪里不好?",
        ],
    },
    "policy_return_window": {
        "en": [
            "I got my {product} in {month}. Can I send it back for a refund now?",
            "Is it too late to return the {product} that I ordered in {month}?",
        ],
        "zh": [
            "我在{month}下单的{product}现在退还来得及吗?",
            "{month}入手的{product},现在还支持退货吗?",
        ],
    },
    "policy_extended_purchase": {
        "en": [
            "I ordered the {product} in {month}. May I add a warranty extension now?",
            "Can the {product} I purchased in {month} still get additional warranty cover?",
        ],
        "zh": [
            "我{month}下单的{product}现在能补一份延长保修吗?",
            "{month}入手的{product}还可不可以加买延保?",
        ],
    },
    "policy_price_protection": {
        "en": [
            (
                "The price of the {product} I ordered in {month} has dropped. Will you pay me back "
                "the difference?"
            ),
            "Can I claim the price guarantee for the {product} I purchased in {month}?",
        ],
        "zh": [
            "{month}下单的{product}现在便宜了,可以补差价吗?",
            "我{month}入手的{product}还能申请价保吗?",
        ],
    },
    "cross_extended": {
        "en": [
            "You fixed my {product}. Does the warranty extension still apply to it?",
            "Did my {product} lose its extended warranty when it was repaired?",
            (
                "The {product} of {name} went through a repair; does its extended warranty still "
                "count?"
            ),
        ],
        "zh": [
            "{name}的{product}返修过一次,延长保修还算数吗?",
            "我的{product}在你们那里修过,延保会不会失效?",
            "送修之后,我{product}的延长保修还能用吗?",
        ],
    },
    "cross_part": {
        "en": [
            "You put a new part into my {product}. Does the guarantee on it still run?",
            "Until when is the spare part guaranteed that was fitted to my {product}?",
        ],
        "zh": [
            "我的{product}修理时换上的零件还保不保?",
            "给我{product}换的那个新配件,质保到什么时候?",
        ],
    },
    "cross_month": {
        "en": [
            (
                "I ordered my {product} in {month}. What came of its repair, and does it "
                "still have "
                "warranty?"
            ),
            (
                "What was fixed on the {product} I purchased in {month}, and what warranty does it "
                "have?"
            ),
        ],
        "zh": [
            "我{month}下单的那个{product}维修情况如何,还有没有保修?",
            "{month}入手的{product}修过哪些地方,享受哪些质保?",
        ],
    },
    "cross_it": {
        "en": [
            "After you fixed my {product}, what did I find wrong with it?",
            "When I got the {product} back from service, what did I complain about?",
        ],
        "zh": [
            "{product}返修回来后,我说发现了什么毛病?",
            "你们把{product}修好寄回,我又提了什么问题?",
        ],
    },
    "cross_fault": {
        "en": [
            (
                "I had something fixed because it {fault}. What was it, and does it still have "
                "warranty?"
            ),
            (
                "Which of my devices went to service because it {fault}, and what warranty "
                "cover is "
                "there?"
            ),
        ],
        "zh": [
            "我哪台机器是因为{fault}拿去修的,现在还有保修吗?",
            "之前因为{fault}报修的是我的什么产品,它有什么质保?",
        ],
    },
    "cross_repeat": {
        "en": [
            "My {product} keeps going back for repair. Am I entitled to a replacement?",
            "How many repairs has my {product} had, and do I qualify for a new one?",
        ],
        "zh": [
            "我的{product}反复返修,能不能给我换台全新的?",
            "我的{product}已经修了几回,达到换新标准了吗?",
        ],
    },
    "cross_latest": {
        "en": [
            "What was the last thing I brought in for service, and does it still have warranty?",
            "Which of my devices was repaired last, and which warranties does it have?",
        ],
        "zh": ["我上一次报修的是什么机器,现在还有保修吗?", "我最后一次送去修的是哪台,有什么质保?"],
    },
    "cross_loan": {
        "en": [
            "You still have my {product} for servicing. Could I borrow a replacement meanwhile?",
            "Is there a unit I can borrow until my {product} is fixed?",
        ],
        "zh": [
            "我的{product}还在你们那儿修,能先给我一台代用机吗?",
            "等{product}修好这段时间,可以借台机器用吗?",
        ],
    },
    "none_product": {
        "en": [
            "You fixed my {product} some time ago. Is the warranty extension on it still good?",
            "On what date did you fix my {product}?",
        ],
        "zh": ["我的{product}之前修过,延长保修还算数吗?", "你们哪天修好我的{product}的?"],
    },
    "none_order": {
        "en": [
            "How much money did you give me back for {order}?",
            "What is the reason that {order_bare} is delayed?",
        ],
        "zh": ["{order}这一单退给我多少?", "单号{order_bare}为什么延误?"],
    },
    "none_topic": {
        "en": [
            "What engraving did I order on my purchase?",
            "Which bank did I take out a loan with?",
            "What was the name of the shop assistant who served me?",
            "What is the number plate of my car?",
        ],
        "zh": [
            "我定做的刻字内容是什么?",
            "我的贷款是在哪家银行办的?",
            "上次在店里接待我的店员叫什么?",
            "我的车牌号是多少?",
        ],
    },
}
