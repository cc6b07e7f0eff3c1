// CarillonCore: the rules of Carillon, without input and output.
//
// Apps own keys and devices. A device has channels and one inbox. A message is published to a channel's token, offered to the
// device's live session, written to its inbox, and leaves the inbox with one outcome. Sockets, HTTP, the database, the clock and
// random numbers are provided from outside: by the stores (`…Store`), `LiveSession`, `TimeSource` and `RandomSource`.
//
// Start with `Channels/Publisher.swift`, then `Inbox/CommitQueue.swift`, `Delivery/DeliveryMachine.swift` and
// `Sessions/SessionMachine.swift`. These four decide what is delivered, when, and which parties are notified. Callbacks and pings
// of backends begin in `Watches/PingMachine.swift` and `LeasedWork/LeasedWork.swift`.
