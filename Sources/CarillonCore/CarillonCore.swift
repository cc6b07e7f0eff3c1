// CarillonCore: what Carillon does, without the ways in and out.
//
// Apps own keys and devices; a device has channels and one inbox; a message is published to a channel's token,
// offered to the device's live session, written to its inbox, and leaves it with one outcome. Sockets, HTTP, the
// database, the clock and chance come in from outside: through the stores (`…Store`), `LiveSession`, `TimeSource`
// and `RandomSource`.
//
// Start with `Channels/Publisher.swift`, then `Inbox/CommitQueue.swift`, `Delivery/DeliveryMachine.swift` and
// `Sessions/SessionMachine.swift`: the four that decide what is delivered, when, and who is told. What back ends are
// told, and when they are pinged, begins in `Watches/PingMachine.swift` and `LeasedWork/LeasedWork.swift`.
