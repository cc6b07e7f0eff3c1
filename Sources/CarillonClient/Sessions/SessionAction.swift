import CarillonMessages
import CarillonWire

/// What the session wants done. All `write`s of one step are one transaction; everything else happens after it.
enum SessionAction: Equatable, Sendable {
    case write(StoreChange)
    case send(ClientFrame)
    case closeSocket(code: UInt16)
    /// Notify the readers of a channel what became of it.
    case deliver(ChannelMachine.Action, to: String)
    /// A message was stored for a channel: its readers can have it.
    case deliverMessage(BufferedMessage, to: String)
    /// The messages of a channel are not in the store any more.
    case dropMessages(of: String)
    case notifyAvailability(Availability)
    /// Ask the app's hook, and say `tokenDelivered` or `tokenDeliveryFailed`.
    case deliverToken(PushChannelAddress, to: String)
    /// A message was answered for that the app will not see.
    case noteUndecryptable(id: String, String, DecryptionFault)
    /// Messages have waited for a while: warn, unless somebody reads the channel.
    case checkForReader(of: String, waiting: Int)
    /// A message was refused because a channel's buffer is full.
    case noteFullBuffer(of: String, waiting: Int)
    /// A firing with which the process ended too often is not given to the app.
    case noteCrashingFiring(SubscriptionFiring, starts: Int)
    /// Say this to the server by HTTP, and say what became of it.
    case reportDevice(PushDeviceMachine.Report, DeviceIdentity)
    case reportUser(UserChange, DeviceIdentity)
    /// Delete a device that was signed out, and report `deregistered` or `deregistrationFailed`.
    case deregister(Deregistration)
    case notifyDevice([PushDeviceEvent])
    case notifySubscriptions(SubscriptionFact)
    /// Something about requests of services was stored.
    case notifyServices
    case notifyProviders
    /// Under which name the server has the services that this install offers.
    case notifyServicesRevision(String?, isRestored: Bool)
    /// The live connection can be asked.
    case openRequests
    /// Of something that ``SocketRequester`` asked.
    case notifyRequests(ServerFrame.Answer)
    /// This install is the device: what is restored from a backup will not say so.
    case markInstall(device: String)
    /// All that waited when the connection began has come.
    case noteCaughtUp
    /// What `lastFailure` is to say.
    case noteFailure(PushError.Code, String)
    /// There is something to do beside the socket: look at `move`.
    case wake
}

/// What the session learned that subscriptions are interested in.
enum SubscriptionFact: Equatable, Sendable {
    /// A connection is live, of a version of the protocol, and the device is whose it should be.
    ///
    /// - Parameter isRestored: The server may not have what it had.
    case connected(version: Int, isRestored: Bool = false)
    /// It is not known yet whose the device is.
    case paused
    case disconnected
    case signedOut
    /// The device belongs to another user, or to none.
    case userChanged
    /// The server does not know the device any more.
    case deviceLost
    case answered(ServerFrame.Answer)
    /// - Parameter starts: The starts of the app's code for the firing that ended with the process.
    case fired(SubscriptionFiring, starts: Int = 0)
}

/// What the next step needs of the world outside; read when the session says `wake` or a task of it has ended.
enum SessionMove: Equatable, Sendable {
    /// Nothing, until `wake`.
    case rest
    case registerDevice
    /// Ask the configured address who it is, and where its sockets are.
    case locateServer
    /// Delete a device that was signed out.
    case deregister(Deregistration)
    /// Give the device another credential.
    case renewCredential(DeviceIdentity)
    case openSocket(DeviceIdentity)
}

/// One durable change.
enum StoreChange: Equatable, Sendable {
    /// The secret by which a repeated registration is recognised; nil when the server has accepted its credential.
    case saveRegistration(String?)
    case saveIdentity(DeviceIdentity)
    /// The server that the identity belongs to, and the address at which it was found.
    case saveServer(address: String, id: String)
    /// The secret of the credential that an install gives itself which a backup brought here.
    case saveRenewal(String?)
    /// Whose the server said the device is.
    case saveAcceptedUser(String?)
    /// Forgets the identity and the ids handled under it, and remembers that there was one.
    case eraseIdentity
    /// Forgets who this device and others are in services.
    case eraseServiceIdentities
    case saveChannel(identifier: String, ChannelMachine)
    /// Forgets a channel, and the messages that wait for it.
    case removeChannel(identifier: String)
    /// A channel that may exist on the server and that nobody wants; to be unregistered.
    case saveWithdrawal(ChannelID)
    case removeWithdrawal(ChannelID)
    case saveDeregistration(Deregistration)
    case removeDeregistration(device: String)
    /// The answer that is sent to the server for a message, each time that it sends it.
    case saveAnswer(MessageAnswer)
    /// The server was not notified this yet.
    case saveReport(MessageAnswer)
    /// The server was notified of everything.
    case removeReports
    /// What this install is to the vendor's push service.
    case saveDevice(PushDeviceMachine)
    /// What the server was not notified yet of the user; nil when it was.
    case saveUser(UserChange?)
    case saveMessage(BufferedMessage, of: String)
    /// The starts of the app's code for a message that did not end.
    case saveStarts(position: Int64, Int)
    /// The starts of the app's code for a firing that did not end; 0 forgets them.
    case saveFiringStarts(id: String, Int)
    case removeMessages(of: String)
    case removeMessage(position: Int64)
    /// Something about a request of a service, that is to be looked at.
    case saveServiceEvent([UInt8])
}

/// A device that was signed out, and that the server may not know of yet.
struct Deregistration: Hashable, Sendable {
    var device: String
    /// A secret: never logged.
    var credential: String
    /// The next one, of a renewal that the server may have taken: a secret, too.
    var nextCredential: String?
    /// The secret of a registration whose credential the server never accepted: a secret, too. The server may have replaced
    /// the credential.
    var registration: String?
    /// The address of the server that the request goes to.
    var server: String
}

/// What is said of a message to the server.
struct MessageAnswer: Hashable, Sendable {
    var id: String
    /// One of ``ResultCode``.
    var code: Int

    /// The frame that notifies the server.
    var frame: ClientFrame {
        code < 300 ? .ack([.init(version: id, code: code)]) : .nack(version: id, code: code)
    }
}
