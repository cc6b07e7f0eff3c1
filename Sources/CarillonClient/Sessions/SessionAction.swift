import CarillonWire

/// What the session wants done. All `write`s of one step are one transaction; everything else happens after it.
enum SessionAction: Equatable, Sendable {
    case write(StoreChange)
    case send(ClientFrame)
    case closeSocket(code: UInt16)
    case deliver(ChannelInbox.Entry, to: String)
    case tellAvailability(Availability)
    /// Ask the app's hook, and say `tokenDelivered` or `tokenDeliveryFailed`.
    case deliverToken(PushChannelAddress, to: String)
    /// A message was answered for that the app will not see.
    case noteUndecryptable(id: String, String, DecryptionFault)
    /// There is something to do beside the socket: look at `move`.
    case wake
}

/// What the next step needs of the world outside; read when the session says `wake` or a task of it has ended.
enum SessionMove: Equatable, Sendable {
    /// Nothing, until `wake`.
    case rest
    case registerDevice
    case openSocket(DeviceIdentity)
}

/// One durable change.
enum StoreChange: Equatable, Sendable {
    case saveIdentity(DeviceIdentity)
    /// Forgets the identity and the ids handled under it, and remembers that there was one.
    case eraseIdentity
    case saveChannel(identifier: String, ChannelMachine)
    /// A channel that may exist on the server and that nobody wants; to be unregistered.
    case saveWithdrawal(ChannelID)
    case removeWithdrawal(ChannelID)
    case saveHandled(HandledMessage)

    /// Whether the change must survive a loss of power, not only the end of the process. A handled id may be lost with
    /// the power: the message comes again.
    var mustReachDisk: Bool {
        if case .saveHandled = self { false } else { true }
    }
}

/// The app's word on a message.
struct HandledMessage: Hashable, Sendable {
    var id: String
    /// One of ``ResultCode``.
    var code: Int

    /// How the server is told.
    var frame: ClientFrame {
        code < 300 ? .ack([.init(version: id, code: code)]) : .nack(version: id, code: code)
    }
}
