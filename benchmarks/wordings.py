"""Sentences of customer service in other words than the shared benchmark's.

Written before the topics' words were chosen, and never looked at while choosing them: what is
right here was not learnt by heart. One line a sentence: topic of the benchmark, then the sentence;
the language is that of its letters.
"""

from __future__ import annotations

from typing import Final

WORDINGS: Final = """
purchase_note|Espresso machine ordered on 4 May (#W2210945); the guarantee runs until 4 May 2027.
purchase_note|Order #W7719034 was placed in March, the drone is covered until March 2027.
purchase_note|2025年5月4日下单的吸尘器（订单#W2210945），原厂质保一年，明年5月截止。
purchase_note|订单#W7719034里的耳机三月到货，保修期到2027年3月。
repair_note|The technician fitted a new battery in the tablet and charged 80 euros.
repair_note|The camera has been fixed: the shutter was exchanged free of charge.
repair_note|师傅给平板换了电池，收了八十块。
repair_note|相机已经修好，快门免费更换。
intake_note|The kettle was handed in for repair because it does not heat up any more.
intake_note|Received at the service centre: laptop, the hinge is broken.
intake_note|水壶不加热了，已送到维修点登记。
intake_note|笔记本转轴断了，维修中心已收件。
serial_note|The device with serial number SN55120934 runs software version 3.1.
serial_note|SN55120934 has been updated to firmware 3.2.
serial_note|序列号SN55120934的机器系统版本是3.1。
serial_note|SN55120934的固件已升级到3.2。
order_refund|We paid 35 dollars back to the buyer for order #W4410087.
order_refund|The money for order #W4410087 has been refunded in part: 35.00.
order_refund|订单#W4410087已给买家退了35元。
order_refund|已办理部分退款35元，对应订单#W4410087。
review|Great value, I would recommend this blender to anyone.
review|One star only, I won't buy here again.
review|性价比很高，强烈推荐这款搅拌机。
review|只给一颗星，以后不会再买了。
warranty_note|The two-year protection plan of the monitor expires on 1 August 2027.
warranty_note|She bought additional coverage for the drone, good until June.
warranty_note|显示器的延长保修2027年8月1日到期。
warranty_note|客户给无人机加购了延保，六月截止。
it_usage|I take it along on every trip.
it_usage|We use it in the kitchen each morning.
it_usage|我出差都带着它。
it_usage|每天早上我们都在厨房用它。
repair|Since it was returned from repair it makes a strange sound.
repair|I picked it up from the workshop and now the lid does not close properly.
repair|修完拿回来以后就有怪声。
repair|从维修点取回后盖子合不上了。
order_delay|Delivery of order #W9034412 is delayed by four days.
order_delay|Order #W9034412 still has not turned up, it should have been here last week.
order_delay|订单#W9034412晚到了四天。
order_delay|订单#W9034412延误，比预计晚一周。
complaint|The customer says her dishwasher stops in the middle of the programme.
complaint|He is unhappy: the charger gets burning hot.
complaint|客户说洗碗机洗到一半就停了。
complaint|客户抱怨充电器烫手。
coupon|There is a voucher SAVE22 on the account, worth 20 percent of the next service bill.
coupon|Promo code SAVE22 takes ten dollars off.
coupon|账户里有一张八折代金券SAVE22。
coupon|优惠码SAVE22可以减十元。
tier|She is a gold member.
tier|His membership was raised to platinum.
tier|她是金卡会员。
tier|会员级别升到了白金。
address|Please deliver to 17 Maple Court, Denver from now on.
address|The customer moved; the new address is 9 Quay Street.
address|以后请寄到朝阳区枫叶路17号。
address|客户搬家了，新住址是码头街9号。
courier|She would rather have her parcels sent with DHL.
courier|Preferred carrier: UPS.
courier|她希望用顺丰寄。
courier|偏好的物流公司是圆通。
phone|Her mobile number is 13912345678.
phone|Call him at 13787654321, that is his new telephone.
phone|她的手机号码是13912345678。
phone|新电话：13787654321。
contact|Send her a text message rather than calling.
contact|He can be reached by phone in the mornings.
contact|请发邮件联系她，别打电话。
contact|上午打电话最容易找到他。
texting|The customer is deaf, so chat or write only.
texting|Do not phone her: she cannot hear well.
texting|客户听不见，只能打字沟通。
texting|请不要致电，她耳朵不好。
invoice|Invoices have to be made out to Harbour Trading Inc.
invoice|The company needs a receipt with its tax number.
invoice|开票单位写海港贸易有限公司。
invoice|公司需要带税号的发票。
gift|It is a birthday present for his mother.
gift|Please wrap it, it is meant as a gift.
gift|这是给妈妈的生日礼物。
gift|要送人的，请包装一下。
parcel|Drop packages at the neighbour's if she is out.
parcel|Leave the delivery with the concierge.
parcel|不在家的话把快递放门卫那里。
parcel|包裹可以放丰巢柜。
stairs|There is no elevator in the house, she lives on the third floor.
stairs|Bulky items must be carried up four flights of stairs.
stairs|老小区没电梯，她住三楼。
stairs|大件要爬四层楼梯送上门。
refund_to|Please send my refunds to my bank account.
refund_to|Money back should go to PayPal.
refund_to|退款请打到我的银行卡。
refund_to|以后退的钱都退回微信。
usage|After the new firmware the screen of the e-reader dims by itself.
usage|The fan of the console turns on when it is charging.
usage|升级以后阅读器的屏幕会自己变暗。
usage|主机充电的时候风扇会转。
sealed|The package arrived unopened with its seal intact.
sealed|When I got the drone, the carton was torn open.
sealed|包裹到手时封口完好，没有拆开过。
sealed|收到无人机时外包装已经破了。
accessory|The remote was missing from the box.
accessory|All accessories were in the package: adapter, cable, manual.
accessory|盒子里少了遥控器。
accessory|配件齐全：适配器、数据线、说明书。
water|The speaker fell into the pool and there is moisture inside.
water|No liquid damage was found in the watch.
water|音箱掉进泳池，里面有水汽。
water|手表检查未发现进水。
policy|Returns are accepted within fourteen days of receipt.
policy|Repairs under warranty are free for the first year.
policy|收货后十四天内可以退货。
policy|保修期内第一年维修免费。
smalltalk|Nice to meet you!
smalltalk|One moment please, I will look that up.
smalltalk|How are you doing today?
smalltalk|很高兴认识您！
smalltalk|请稍等，我看一下。
smalltalk|今天过得怎么样？
"""
