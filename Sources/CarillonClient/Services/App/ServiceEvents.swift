/// What happens to the requests of a consumer.
///
/// Later versions of the library can add cases: keep a `default` in a `switch` over an event.
public enum ServiceClientEvent: Sendable {
    /// Events were dropped, as the iteration did not take them in time; how many. It comes before the events that wait. Results of
    /// ``ServiceClient/send(_:to:_:attachments:deadline:foreground:id:)`` are in ``ServiceClient/replies`` as well.
    case missed(_ count: Int)
    /// A file of a request begins to be sent; its path at this device.
    case didStartSending(to: ServiceApplication, filename: String, id: String)
    /// The provider has all of a request on its disk: its files may be changed or removed. It does not come for a request that ended before.
    case didFinishSending(to: ServiceApplication, attachments: [String], parameters: ServiceValue, id: String)
    /// A reply with files begins to come; how many, one or more.
    case willStartReceiving(from: ServiceApplication, count: Int, id: String)
    /// A file of it begins to come: the path that it will have, and its size in bytes.
    case willStartReceivingFile(from: ServiceApplication, path: String, size: UInt64, id: String)
    /// The one result. After this the files have their names, and not before.
    case didReceive(from: ServiceApplication, Result<ServiceReply, ServiceError>, id: String)
    /// A result that the app did not confirm was removed with its files.
    case resultRemoved(from: ServiceApplication, id: String, reason: ResultRemoval)
    /// A device came with another identity than was accepted. Nothing is sent to it before ``ServiceClient/accept(_:fingerprint:)``.
    case identityChanged(ServiceApplication, fingerprint: String)
    /// The files of a request move: the bytes of all its sealed files that the server has, of how many. At most ten a second for a request;
    /// the last has all. Of those that wait for an iteration a newer one replaces an older one.
    case sending(id: String, bytesSent: Int64, of: Int64)
    /// The files of a reply move: the bytes of all its sealed files that are here, of how many; as often as ``sending(id:bytesSent:of:)``.
    case receiving(id: String, bytesReceived: Int64, of: Int64)
}

/// The reason for which a result was removed before the app confirmed it. Later versions of the library can add reasons.
public struct ResultRemoval: RawRepresentable, Hashable, Sendable {
    /// The name of the reason.
    public let rawValue: String

    /// Makes a reason from its name.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// The result was not confirmed for seven days.
    public static let expired = ResultRemoval(rawValue: "expired")
    /// More than 1,000 results, or more than 64 MiB of results with their files, waited.
    public static let limit = ResultRemoval(rawValue: "limit")
    /// The process ended ten times while a delegate was called with the result, or a reader of ``ServiceClient/replies`` had it.
    public static let crashed = ResultRemoval(rawValue: "crashed")
}

/// What happens to the requests that a provider is sent, and to its replies.
///
/// Later versions of the library can add cases: keep a `default` in a `switch` over an event.
public enum ServiceProviderEvent: Sendable {
    /// Events were dropped, as the iteration did not take them in time; how many. It comes before the events that wait. Handlers are called for
    /// all requests in any case.
    case missed(_ count: Int)
    /// A request with files begins to come; how many, one or more.
    case willStartReceiving(from: ServiceApplication, count: Int, id: String)
    /// A file of it begins to come: the path that it will have, and its size in bytes.
    case willStartReceivingFile(from: ServiceApplication, path: String, size: UInt64, id: String)
    /// A request is here with all its files; its handler is called.
    case didReceive(ServiceRequest)
    /// A file of a reply begins to be sent.
    case didStartSending(to: ServiceApplication, filename: String, id: String)
    /// The server has a reply: its files may be changed or removed.
    case didFinishSending(to: ServiceApplication, attachments: [String], id: String)
    /// A request ended at its deadline without a result, as it could not be stored here: ``ServiceError/Code/storageUnavailable``. The
    /// consumer has ``ServiceError/Code/deadlineExceeded``.
    case requestFailed(from: ServiceApplication, ServiceError, id: String)
    /// The process ended ten times while the handler of a request ran. The handler is not called again for it, and the consumer is answered
    /// ``ServiceError/Code/serviceFailed``.
    case handlerCrashed(ServiceMethod, from: ServiceApplication, id: String)
    /// The consumer does not want a request any more. Its handler's task is cancelled.
    case cancelled(id: String)
    /// Another app asks this one to come to the front of the screen.
    case frontRequested(by: ServiceApplication)
    /// A device came with another identity than was accepted: it is answered ``ServiceError/Code/identityChanged`` before
    /// ``ServiceProvider/accept(_:fingerprint:)``.
    case identityChanged(ServiceApplication, fingerprint: String)
    /// The server refused what the app offers. The library sends the offer again when the app offers something else, when the device has
    /// another user, and at the next start. Until then other apps find what the app offered before.
    case offerRefused(ServiceError)
    /// The files of a reply move: the bytes of all its sealed files that the server has, of how many. At most ten a second for a request;
    /// the last has all. Of those that wait for an iteration a newer one replaces an older one.
    case sending(id: String, bytesSent: Int64, of: Int64)
    /// The files of a request move: the bytes of all its sealed files that are here, of how many; as often as
    /// ``sending(id:bytesSent:of:)``.
    case receiving(id: String, bytesReceived: Int64, of: Int64)
}
