/// An event of the requests of a consumer.
///
/// Later versions of the library can add cases: keep a `default` in a `switch` over an event.
public enum ServiceClientEvent: Sendable {
    /// The number of events that were dropped because the iteration did not take them in time. It comes before the events that
    /// wait. Results of ``ServiceClient/send(_:to:_:attachments:deadline:foreground:id:)`` are in ``ServiceClient/replies`` as
    /// well.
    case missed(_ count: Int)
    /// The upload of a file of a request begins. `filename` is its path on this device.
    case didStartSending(to: ServiceApplication, filename: String, id: String)
    /// The provider has stored the whole request: its files can be changed or removed. It is not reported for a request that
    /// ended before.
    case didFinishSending(to: ServiceApplication, attachments: [String], parameters: ServiceValue, id: String)
    /// The download of a reply with files begins. `count` is the number of files, one or more.
    case willStartReceiving(from: ServiceApplication, count: Int, id: String)
    /// The download of a file of the reply begins: its final path, and its size in bytes.
    case willStartReceivingFile(from: ServiceApplication, path: String, size: UInt64, id: String)
    /// The result of a request arrived. Its files have their final names from now on.
    case didReceive(from: ServiceApplication, Result<ServiceReply, ServiceError>, id: String)
    /// A result that the app did not confirm was removed with its files.
    case resultRemoved(from: ServiceApplication, id: String, reason: ResultRemoval)
    /// A device presented another identity than the accepted one. No request is sent to it before
    /// ``ServiceClient/accept(_:fingerprint:)``.
    case identityChanged(ServiceApplication, fingerprint: String)
    /// The progress of the upload of a request's files: the bytes of all its sealed files that the server has, and their total.
    /// It is reported up to ten times per second for a request; the last one has the total. A newer progress replaces an older
    /// one that waits for an iteration.
    case sending(id: String, bytesSent: Int64, of: Int64)
    /// The progress of the download of a reply's files: the received bytes of all its sealed files, and their total; as often as
    /// ``sending(id:bytesSent:of:)``.
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

/// An event of the requests that a provider receives, or of its replies.
///
/// Later versions of the library can add cases: keep a `default` in a `switch` over an event.
public enum ServiceProviderEvent: Sendable {
    /// The number of events that were dropped because the iteration did not take them in time. It comes before the events that
    /// wait. Handlers are called for all requests in any case.
    case missed(_ count: Int)
    /// The download of a request with files begins. `count` is the number of files, one or more.
    case willStartReceiving(from: ServiceApplication, count: Int, id: String)
    /// The download of a file of the request begins: its final path, and its size in bytes.
    case willStartReceivingFile(from: ServiceApplication, path: String, size: UInt64, id: String)
    /// A request arrived with all its files; its handler is called.
    case didReceive(ServiceRequest)
    /// The upload of a file of a reply begins.
    case didStartSending(to: ServiceApplication, filename: String, id: String)
    /// The server received a reply: its files can be changed or removed.
    case didFinishSending(to: ServiceApplication, attachments: [String], id: String)
    /// A request ended at its deadline without a result, because it could not be stored here:
    /// ``ServiceError/Code/storageUnavailable``. The consumer receives ``ServiceError/Code/deadlineExceeded``.
    case requestFailed(from: ServiceApplication, ServiceError, id: String)
    /// The process ended ten times while the handler of a request ran. The handler is not called again for it, and the consumer
    /// receives ``ServiceError/Code/serviceFailed``.
    case handlerCrashed(ServiceMethod, from: ServiceApplication, id: String)
    /// The consumer cancelled a request. The task of its handler is cancelled.
    case cancelled(id: String)
    /// Another app requests that this one comes to the front of the screen.
    case frontRequested(by: ServiceApplication)
    /// A device presented another identity than the accepted one. Its requests end with ``ServiceError/Code/identityChanged``
    /// until ``ServiceProvider/accept(_:fingerprint:)``.
    case identityChanged(ServiceApplication, fingerprint: String)
    /// The server rejected the app's offer. The library sends the offer again when the app changes it, when the device has
    /// another user, and at the next start. Until then other apps find the former offer.
    case offerRefused(ServiceError)
    /// The progress of the upload of a reply's files: the bytes of all its sealed files that the server has, and their total. It
    /// is reported up to ten times per second for a request; the last one has the total. A newer progress replaces an older one
    /// that waits for an iteration.
    case sending(id: String, bytesSent: Int64, of: Int64)
    /// The progress of the download of a request's files: the received bytes of all its sealed files, and their total; as often
    /// as ``sending(id:bytesSent:of:)``.
    case receiving(id: String, bytesReceived: Int64, of: Int64)
}
