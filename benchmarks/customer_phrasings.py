"""A fourth set of question wordings for the shared after-sales benchmark: what customers type.

Its writer saw the benchmark's own sentences (`templates.py`) only: neither an engine nor any other
set of wordings. Nothing is fitted on it; `benchmarks.robustness` asks it.
"""

from __future__ import annotations

QUESTIONS: dict[str, dict[str, list[str]]] = {
    "single_contact": {
        "en": [
            "Can you check how I like to be reached?",
            "If you need to get hold of me, which way and at what time did I ask for?",
            "my contact preference?",
            (
                "I don't want to be disturbed at the wrong moment. What have you noted about "
                "getting in touch with me?"
            ),
        ],
        "zh": [
            "要找我的话,我跟你们说的是什么方式、什么时间?",
            "我的联系偏好是啥",
            "麻烦查一下,我当时要求你们用哪种方式找我?",
            "我不想老被打扰,你们那边记的是怎么跟我联络?",
        ],
    },
    "single_parcel": {
        "en": [
            "Nobody is in during the day. Where did I say deliveries can be dropped off?",
            "drop-off spot for my packages when I'm out?",
            "Could you tell me what place I named for leaving a delivery while I'm away?",
            "If the driver rings and nobody opens, where does my package go?",
        ],
        "zh": [
            "白天家里没人收件,我说过东西搁哪儿?",
            "没人签收的话,我的快件该放什么地方",
            "麻烦帮我看下,我留的代收地点是哪里?",
            "送货的时候我要是出门了,货给我留在哪儿?",
        ],
    },
    "single_texting": {
        "en": [
            "I once told you not to ring me. What reason did I give?",
            "why no phone calls for me, only text?",
            "Could you look up why I asked for everything in writing rather than over the phone?",
            "What did I say was the reason you should message me and never ring?",
        ],
        "zh": [
            "我让你们别给我打电话,当时说的是什么原因?",
            "为啥只能给我打字不能打电话来着",
            "麻烦查查,我是因为什么才要你们发信息、别来电的?",
            "我一直只看消息不接来电,理由我跟你们讲过,是什么?",
        ],
    },
    "single_invoice": {
        "en": [
            "Our accountant is asking. What company name do you print on my bills?",
            "billing company name for my invoices?",
            "Could you please confirm the business my bills are issued to?",
            "When you invoice me, which firm do you put at the top?",
        ],
        "zh": [
            "财务要报销,你们给我开票开的是哪个单位?",
            "我的开票单位名称?",
            "麻烦确认一下,我留的开票信息里公司叫什么?",
            "给我开发票的时候,单位那一栏填的是什么?",
        ],
    },
    "single_gift": {
        "en": [
            "One of the things I ordered was meant for somebody else. Who was it for?",
            "the gift I got from your shop, who was it for again?",
            "Could you remind me which item I bought to give away, and who gets it?",
            "I told you I was getting something as a gift. For which person?",
        ],
        "zh": [
            "我在你们这儿买过一样东西是要送人的,收礼的是谁?",
            "我那份礼物打算给谁来着",
            "麻烦帮我回忆一下,哪件商品我说过是买来送人的,给谁的?",
            "之前我提过有件东西要拿去送礼,对方是我什么人?",
        ],
    },
    "single_stairs": {
        "en": [
            (
                "Something heavy is on its way to me. How many floors up does it have to be "
                "carried, or can your people take an elevator?"
            ),
            "my floor? elevator or stairs only?",
            (
                "Would you please check what you have noted about my storey and whether there's "
                "an elevator?"
            ),
            "Do the delivery guys have to take the stairs at my place, and how far up?",
        ],
        "zh": [
            "有个大件要送过来,师傅得爬几层楼?能坐电梯不?",
            "我家楼层多少,是不是步梯房",
            "麻烦看下你们登记的我家在几层,上楼是走楼梯还是坐电梯?",
            "送货师傅到我这儿是不是只能走楼梯,要上到几层?",
        ],
    },
    "single_refund_to": {
        "en": [
            "When I get money back from you, where did I ask for it to land?",
            "which refund method did I ask for?",
            "I may send something back soon. Where did I tell you to pay the money?",
            "Could you confirm how you'll pay me back whenever I return something?",
        ],
        "zh": [
            "我过几天要退个东西,按我之前说的,钱该打到哪儿?",
            "退款方式我选的啥",
            "麻烦确认下,退回来的钱我要求进哪个账户?",
            "要是有钱退给我,我说过走什么途径到账?",
        ],
    },
    "temporal_address": {
        "en": [
            "If I place an order right now, where does it go?",
            "current delivery address on my account?",
            (
                "I want to be sure my parcel gets to the right door. Which address are you using "
                "for me at the moment?"
            ),
            "Could you please read me back the address my deliveries go to now?",
        ],
        "zh": [
            "我这会儿下单的话,货会寄到哪儿?",
            "目前我账号里的寄送地址?",
            "怕寄错地方,想核对一下,现在给我发货发到什么地址?",
            "麻烦报一下我眼下用的收件地址。",
        ],
    },
    "temporal_phone": {
        "en": [
            "If you had to call me today, what number would you dial?",
            "my current mobile no. in your system?",
            "I'd like to verify my details. At which number can I be called now?",
            "Could you please tell me the telephone number saved in my account at present?",
        ],
        "zh": [
            "你们现在要打给我,拨的是哪个号?",
            "我账号目前绑的手机号?",
            "想核对下资料,眼下系统里我的号码是多少?",
            "麻烦念一下我当前留的联系号码。",
        ],
    },
    "temporal_courier": {
        "en": [
            "Who brings my packages these days, which delivery company?",
            "delivery company set for my orders right now?",
            (
                "I'm waiting for the doorbell to ring. Which carrier are my deliveries coming "
                "with at present?"
            ),
            "Could you please check which carrier my account is set to now?",
        ],
        "zh": [
            "我的货现在都是哪个快递公司在送?",
            "目前我这边默认发什么快递",
            "我在等人送货上门,想问下我的单子现在走哪家物流?",
            "麻烦看看我当前设定的快递公司是哪个。",
        ],
    },
    "temporal_tier": {
        "en": [
            "What's my status in your membership programme right now?",
            "my current member status?",
            "I'm wondering which perks I get. What rank of member do I hold at the moment?",
            "Could you please tell me what kind of member I am now?",
        ],
        "zh": [
            "我这会儿算你们哪一级会员?",
            "目前我的会员身份?",
            "想知道能享受什么权益,先帮我看看我现在是哪一档会员。",
            "麻烦查下我当前会员到哪一级了?",
        ],
    },
    "temporal_coupon": {
        "en": [
            (
                "Something of mine needs fixing. Have I got a voucher that takes money off the "
                "repair right now?"
            ),
            "any working repair voucher on my account?",
            "Could you look up the discount code I can use on a repair at the moment?",
            "I'd like to pay less for a repair. Which of my vouchers hasn't run out yet?",
        ],
        "zh": [
            "我要修个东西,手上还有没过期、能抵维修费的券吗?",
            "目前可用的修理券有没有,哪张?",
            "麻烦看下,现在修东西我能用哪个优惠码?",
            "想省点维修费,我账户里哪张券现在还没失效?",
        ],
    },
    "history_address": {
        "en": [
            "I've changed my address with you. Where did my deliveries go until then?",
            "my old delivery address, the one right before the current one?",
            "Could you please look up the address my account had prior to the latest change?",
            "Where were you sending my packages until I gave you the new address?",
        ],
        "zh": [
            "我换过地址了,换之前你们把东西寄到哪儿?",
            "我的旧收件地址,就现在这个的前一个",
            "麻烦查一下,最近一次改地址以前我留的是哪儿?",
            "在用现在这个地址之前,我的快递都往哪里送?",
        ],
    },
    "history_phone": {
        "en": [
            "I've got a new number now. What was the old one you had saved?",
            "my old mobile no., before I switched to this one?",
            "Could you please check what number my account showed prior to the latest update?",
            "At what number could you call me until I gave you the present one?",
        ],
        "zh": [
            "我换了新号码,换之前留给你们的那个是多少?",
            "现在这个手机号的前一个号是啥",
            "麻烦看下,上次改号码以前我账号里存的是哪个?",
            "在用现在这个号之前,你们打哪个电话找我?",
        ],
    },
    "history_courier": {
        "en": [
            "I switched carriers a while ago. Who was bringing my parcels until then?",
            "my old delivery company, the one just before this one?",
            (
                "Could you please tell me which carrier was set for my orders prior to the last "
                "change?"
            ),
            "From which carrier did I switch to the one I have now?",
        ],
        "zh": [
            "我后来换了一家快递,换之前给我送的是谁?",
            "现在这家快递的前一家是哪个",
            "麻烦查查,上次改快递之前我选的哪个公司?",
            "我是从哪家物流换到现在这家的?",
        ],
    },
    "history_tier": {
        "en": [
            "My status has changed. What kind of member was I until then?",
            "old member status, right before the current one?",
            "Could you please look up which membership rank I held until it was last changed?",
            "From which membership rank did I move to the one I have today?",
        ],
        "zh": [
            "我的会员级别变过,变之前是哪一档?",
            "现在这个会员级别的前一个是啥",
            "麻烦看下,上次调整之前我属于哪一级会员?",
            "我是从哪个会员档次变成现在这一档的?",
        ],
    },
    "exact_refund": {
        "en": [
            "{order}: how much money did I get back?",
            "I'm checking my bank statement. What sum did you pay me back for order {order_bare}?",
            "refund amount {order_bare}?",
            "Could you please tell me what the refund on my order {order} came to?",
        ],
        "zh": [
            "{order}这单一共退给我多少?",
            "{order_bare}退款金额?",
            "我想对个账,订单号{order_bare},你们退回来的是多少钱?",
            "麻烦查一下{order},退给我的钱具体是多少?",
        ],
    },
    "exact_delay": {
        "en": [
            "I'm annoyed about {order}. How many days behind schedule is it?",
            "{order_bare} delay, how many days?",
            "Could you please tell me how far past the promised date order {order} is?",
            "How many days overdue is the package with order number {order_bare}?",
        ],
        "zh": [
            "{order}没按时到,比说好的时间晚了多少天?",
            "{order_bare}延误几天",
            "麻烦查下订单号{order_bare},送货超期多少天?",
            "我等得有点急,{order}这单到底拖了几天?",
        ],
    },
    "exact_serial": {
        "en": [
            "I'm thinking of updating {serial}. What firmware version does it have?",
            "{serial} firmware version?",
            "Could you please look up the firmware you have on record for the unit {serial}?",
            "The sticker on the back says {serial}. Which version of the firmware is on it?",
        ],
        "zh": [
            "我准备升级,{serial}这台目前是什么固件版本?",
            "{serial}固件版本号?",
            "麻烦查一下机身号为{serial}的设备,里面是哪版固件?",
            "机器上贴的号是{serial},登记的固件是哪一版?",
        ],
    },
    "conflict_water": {
        "en": [
            "Was any moisture found in my {product}?",
            "I keep hearing different things. Did my {product} get wet inside or not?",
            "water inside my {product}, yes or no?",
            "Could you please tell me whether any fluid made its way into my {product}?",
        ],
        "zh": [
            "说法不一样我有点糊涂,我的{product}内部到底有没有水?",
            "我的{product}进没进过水",
            "麻烦确认一下,我的{product}里头有没有发现液体?",
            "是不是有水渗到我的{product}里面去了?",
        ],
    },
    "conflict_sealed": {
        "en": [
            "Did my {product} leave your warehouse in an unopened package?",
            (
                "I wonder if somebody had used it before me. Was the seal on my {product} intact "
                "when you sent it?"
            ),
            "my {product}: packaging intact when it went out, or already open?",
            "Could you please check whether my {product} went out with an unbroken seal?",
        ],
        "zh": [
            "我的{product}从你们仓库出来时,盒子是没开过的吗?",
            "我的{product}发出来时封条完好吗",
            "怀疑被人动过,我的{product}寄出的时候到底拆没拆封?",
            "麻烦核实下,我的{product}出货那会儿外包装是不是完整没拆的?",
        ],
    },
    "conflict_accessory": {
        "en": [
            "I can't remember seeing a cable. Was one packed with my {product}, and a charger too?",
            "charger + cable included with my {product}?",
            "Could you please check if a charger and a lead were packed with my {product}?",
            "What about the charging accessories, did you put them in with my {product}?",
        ],
        "zh": [
            "我记不清盒子里有什么了,我的{product}附带充电头和充电线吗?",
            "我的{product}配件齐不齐,充电器和线都在吗",
            "麻烦核实下,我的{product}装箱的时候,充电的配件放没放?",
            "我买的{product},盒里带没带充电器和数据线?",
        ],
    },
    "isolation": {
        "en": [
            "Hello, {name} speaking. What trouble with my {product} did I tell you about?",
            (
                "I got in touch about my {product} some time ago, my name is {name}. What did I "
                "say the matter was?"
            ),
            "{name}, my {product}, what was my complaint?",
            (
                "My name is {name}. Could you please look up what I told you was wrong with my "
                "{product}?"
            ),
        ],
        "zh": [
            "你好,我叫{name},之前我跟你们说过我的{product}有毛病,是什么毛病?",
            "本人{name},{product}当时投诉的是啥",
            "我以前为{product}找过你们客服,当时说的是哪里不对?我的名字是{name}。",
            "麻烦查一下{name}的记录,我当时说{product}出了什么故障?",
        ],
    },
    "policy_return_window": {
        "en": [
            (
                "I don't want to keep the {product} I ordered in {month}. Can I send it back or "
                "have I missed the deadline?"
            ),
            "my {product}, ordered in {month}, still returnable?",
            (
                "Could you please check if I may still send back the {product} that I ordered in "
                "{month}?"
            ),
            "Do I have any time left to give back the {product} I purchased in {month}?",
        ],
        "zh": [
            "{month}下单的{product}我不想要了,还来得及退吗?",
            "{product},{month}买的,还退得了不",
            "麻烦看下,我在{month}买的{product}现在还能不能办退货?",
            "我{month}入手的{product}用着不合适,退货期限过没过?",
        ],
    },
    "policy_extended_purchase": {
        "en": [
            (
                "I skipped the extra warranty when I ordered the {product} in {month}. Can I "
                "still get it?"
            ),
            "extended cover for my {product} bought in {month}, still possible to get?",
            (
                "Could you please tell me whether I may still add longer warranty cover to the "
                "{product} I ordered in {month}?"
            ),
            "Have I missed the chance to pay for a longer warranty on my {product} from {month}?",
        ],
        "zh": [
            "{month}下单{product}的时候没买延长保修,现在补得上吗?",
            "{product},{month}买的,还能再买延保不",
            "麻烦问下,我{month}购入的{product},延保服务现在还给不给加?",
            "我想让{month}买的{product}保修久一点,现在花钱加还行不行?",
        ],
    },
    "policy_price_protection": {
        "en": [
            (
                "I paid more for the {product} in {month} than you charge today. Will you refund "
                "what I overpaid?"
            ),
            "price of my {product} from {month} went down, any money back?",
            (
                "Could you please check if I'm still protected against a price cut on the "
                "{product} I ordered in {month}?"
            ),
            (
                "You've made the {product} cheaper since I ordered in {month}. Am I still in "
                "time to claim the gap?"
            ),
        ],
        "zh": [
            "刚看到{product}便宜了,我是{month}买的,多花的钱退不退?",
            "{product}我{month}买的,现在跌价了,补不补差额",
            "麻烦查下,我{month}下单的{product}还享不享受保价?",
            "我{month}买{product}买贵了,按价保规则还能把差额要回来吗?",
        ],
    },
    "cross_extended": {
        "en": [
            "You've fixed my {product} for me. Does the extra warranty I paid for carry on?",
            "after the repair of my {product}: extended cover gone or still good?",
            (
                "Could you please check whether the repair has put an end to the extended cover "
                "on my {product}?"
            ),
            "{name} here, you fixed the {product} I bought. Can I go on using the longer warranty?",
        ],
        "zh": [
            "你们给我修过{product},我另外花钱买的延保是不是还算数?",
            "{product}修完了,延长保修作废没有",
            "麻烦确认一下,{product}返修之后,原来的延保还能接着用吗?",
            "我是{name},我买的{product}送修过,加购的延长保修还在不在?",
        ],
    },
    "cross_part": {
        "en": [
            (
                "Your technicians put a new component in my {product}. Until when is there a "
                "guarantee on it?"
            ),
            "replacement part in my {product}, still guaranteed?",
            (
                "Could you please tell me how long you stand behind the spare part fitted to my "
                "{product}?"
            ),
            "If the part you swapped in my {product} fails now, will its guarantee pay for it?",
        ],
        "zh": [
            "你们师傅给我的{product}换了个新零件,这零件还保不保?",
            "{product}更换件的质保到啥时候",
            "麻烦查下,我{product}维修时装上去的配件,质保还剩多久?",
            "我的{product}换过件,要是那个件又坏了,还在质保里吗?",
        ],
    },
    "cross_month": {
        "en": [
            (
                "I ordered the {product} in {month} and sent it in for repair. What was done, "
                "and do I still have warranty on it?"
            ),
            "my {product} from {month}: repair result? warranty?",
            (
                "Could you please tell me what was fixed on the {product} I ordered in {month} "
                "and how long I'm covered?"
            ),
            "What did the technicians do to my {product} from {month}, and is any warranty left?",
        ],
        "zh": [
            "{month}下单的{product}我拿去修过,都弄了些什么?现在还保吗?",
            "{product}({month}买的)维修结果?保修情况?",
            "麻烦说一下我{month}购入的{product}修理的情况,另外保修还剩不剩?",
            "我{month}买的那个{product}当时修的是哪儿,现在还有什么保修能用?",
        ],
    },
    "cross_it": {
        "en": [
            (
                "I got my {product} back from repair and wasn't happy. What new trouble did I "
                "tell you about?"
            ),
            "my {product} after repair, what did I say was off?",
            (
                "Could you please look up the trouble I mentioned once I had my {product} back "
                "from the workshop?"
            ),
            "Which fault did I notice on my {product} only after you had fixed it?",
        ],
        "zh": [
            "{product}修好给我以后我又提了个毛病,是什么?",
            "{product}返修回来,我说哪里又不对了",
            "麻烦翻一下记录,我的{product}维修取回后,我跟你们讲过出现了什么新情况?",
            "我的{product}有个毛病是修之前没有的,我当时是怎么说的?",
        ],
    },
    "cross_fault": {
        "en": [
            (
                "Something I own had to be fixed because it {fault}. What was it, and do I still "
                "have warranty on it?"
            ),
            "sent in for repair, it {fault}: which item was that, any warranty left?",
            (
                "I told you that it {fault}, and your workshop took care of it. Which of my "
                "things was that, and how is it covered?"
            ),
            (
                "Could you please find the item I had fixed because it {fault}, and tell me if a "
                "warranty still applies?"
            ),
        ],
        "zh": [
            "有个东西{fault},我拿去修了,那是哪一件?现在还保吗?",
            "{fault},为这个修过的是我哪件东西,保修还在不在",
            "麻烦查一下我哪样产品出现过{fault}的情况并且修了,还有没有保修?",
            "我报修的时候说{fault},那是哪个产品?它现在有什么保修?",
        ],
    },
    "cross_repeat": {
        "en": [
            (
                "My {product} keeps ending up in your workshop. Have I reached the point where "
                "you swap it for a new one?"
            ),
            "number of repairs on my {product}? entitled to a new one yet?",
            (
                "Could you please count the repairs of my {product} and tell me whether they "
                "qualify me for a replacement?"
            ),
            (
                "How many times did you have to fix my {product}, and can I get a brand-new one "
                "for that?"
            ),
        ],
        "zh": [
            "{product}老是坏,来回修了这么多趟,能不能直接给我换个新的?",
            "{product}维修次数多少,达到换新标准没",
            "麻烦数一下我的{product}总共送修了几回,符合更换新机的条件吗?",
            "我的{product}反复返修,按规定是不是该给我换个全新的了?",
        ],
    },
    "cross_latest": {
        "en": [
            (
                "I've had several things fixed by you. Which one was the last, and does it still "
                "have warranty?"
            ),
            "newest repair: which item? warranty left?",
            (
                "Could you please check what I last sent in to be fixed and whether it's still "
                "covered?"
            ),
            (
                "Of all my things, which one went in for repair last, and which warranties does "
                "it have?"
            ),
        ],
        "zh": [
            "我在你们这修过几样东西,最后一次修的是什么?还保不保?",
            "我最后一回维修的是哪件,保修还有没有",
            "麻烦看下我最新一单维修对应的是什么产品,现在有哪些保修?",
            "在我所有东西里,最后送去修的是哪个,它还能享受保修吗?",
        ],
    },
    "cross_loan": {
        "en": [
            (
                "You haven't finished repairing my {product} and I need something to use. Can "
                "you lend me a substitute?"
            ),
            "my {product} still in repair, any loaner?",
            (
                "Would you please tell me if I'm entitled to borrow a unit until you've fixed my "
                "{product}?"
            ),
            "How about a temporary replacement for me while you are working on my {product}?",
        ],
        "zh": [
            "{product}还在你们那儿修着,我没得用,能先借我一个顶着吗?",
            "{product}维修中,有代用机不",
            "麻烦问下,我的{product}修好之前,可不可以申请一个临时替代的?",
            "我的{product}送修一直没回来,这期间你们提供备用的吗?",
        ],
    },
    "none_product": {
        "en": [
            "On what date did you fix my {product}?",
            "my {product} got fixed, extended cover still running?",
            "Could you please look up the day you repaired my {product}?",
            "I had my {product} fixed by you. Does the extra warranty still count?",
        ],
        "zh": [
            "你们哪天给我修的{product}?",
            "我的{product}修过,延长的保修还在不",
            "麻烦查下我的{product}是在什么日子修的?",
            "我的{product}找你们修过,当初加买的延保现在还能用吗?",
        ],
    },
    "none_order": {
        "en": [
            "{order}: what sum did you pay back to me?",
            "My package from order {order_bare} is taking too long. What's holding it up?",
            "refund for {order_bare}, how much was it?",
            "Could you please explain the delay of order {order}?",
        ],
        "zh": [
            "{order}这单你们退回来多少?",
            "{order_bare}没准时送到,什么原因",
            "我想核一下账,{order_bare}退给我的是多少?",
            "麻烦解释一下订单号{order}为什么送得这么慢?",
        ],
    },
    "none_topic": {
        "en": [
            "Which wrapping paper did I pick for the gift?",
            "Who am I insured with?",
            "I was in one of your stores last week. Which branch was it?",
            "Could you please tell me what size shoes I wear?",
        ],
        "zh": [
            "礼物外面那层包装纸我挑的哪款?",
            "我的保险是在哪家公司上的",
            "上星期我逛过你们一家线下店,是哪一家?",
            "麻烦看下我鞋子穿几号的?",
        ],
    },
}
