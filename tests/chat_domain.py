"""A small business that has everything a chat model chooses from."""

from __future__ import annotations

from ecphoria.language.lexicon import Lexicon
from ecphoria_schema.domain import parse_domain

PARCELS = parse_domain(
    r"""
version: 1
name: parcels
title: {en: Parcel shop, zh: 包裹店}
root: Client
entities:
  Client:
    title: {en: client, zh: 客户}
    caption: "{name}"
    recognise: [name]
    properties: {name: {type: string, required: true}}
  Order:
    title: {en: order, zh: 订单}
    caption: "{id}"
    id_patterns:
      - {regex: '#?(\d{6,})', forms: ['{0}']}
    properties: {status: {type: string}}
relations:
  - {type: PLACED, from: Client, to: Order, cardinality: one_to_many, owns: true,
     forward: orders, backward: client}
paths:
  orders: {walk: Client-PLACED->Order}
topics:
  delivery:
    title: {en: delivery, zh: 物流}
    keywords: {en: [deliver*, ship*, parcel], zh: [发货, 物流, 包裹]}
  colour:
    title: {en: colour, zh: 颜色}
    keywords: {en: [blue, red], zh: [蓝色, 红色]}
intents:
  ask:
    title: {en: asks, zh: 询问}
    keywords: {en: [where, when], zh: [怎么, 什么时候]}
  promise:
    title: {en: promises, zh: 承诺}
    keywords: {en: [i will], zh: [我帮您]}
urgency:
  high: {en: [urgent], zh: [急]}
attributes:
  order.status:
    entity: Order
    title: {en: order status, zh: 订单状态}
    values:
      waiting: {en: [not shipped, waiting], zh: [未发货, 没发货]}
      shipped: {en: [shipped, sent], zh: [已发货, 已发出]}
      delivered: {en: [delivered, arrived], zh: [已送达, 已签收]}
  client.address:
    entity: Client
    title: {en: address, zh: 地址}
  client.taste:
    entity: Client
    title: {en: taste, zh: 喜好}
    keyed: true
    values:
      like: {en: [like, love], zh: [喜欢]}
      dislike: {en: [hate, dislike], zh: [讨厌, 不喜欢]}
slots:
  tracking_number:
    title: {en: tracking number, zh: 物流单号}
    en: ['tracking number ([A-Z]{2}\d{6})']
    zh: ['单号([A-Z]{2}\d{6})']
facts:
  order_status:
    type: exchange
    title: {en: state of an order, zh: 订单情况}
    attribute: order.status
    answer: {any: {en: [shipped], zh: [已发出]}}
    text: {en: "{question} {answer}", zh: "{question}{answer}"}
sources:
  desk: {title: {en: desk, zh: 前台}, reliability: 0.9}
default_source: desk
kinds:
  episodic: {half_life_days: 60}
  semantic: {half_life_days: 365}
  procedural: {half_life_days: 1460}
cues:
  smalltalk: {en: [hello, thanks, thank you, bye], zh: [你好, 您好, 谢谢, 再见, 不客气]}
  question: {en: [is it], zh: [吗]}
  hypothetical: {en: [if], zh: [如果]}
  hearsay: {en: [told], zh: [听说]}
  third_person: {en: [brother*], zh: [我哥]}
""",
    "parcels.yaml",
)
PARCEL_WORDS = Lexicon(PARCELS)

# The dialogue that everything here is tried on, in both languages.
ZH = (
    "用户：我的订单#882301怎么还没发货？客服：已发出，物流单号SF112233。"
    "用户：物流官网查不到啊。客服：我帮您联系仓库核查"
)
EN = (
    "User: Where is my order #882301? Agent: It was shipped, tracking number SF112233. "
    "User: The carrier's site does not find it. Agent: I will ask the warehouse to check."
)
