/// What happens to the requests of a consumer.
public enum ServiceClientEvent: Sendable {
    /// A file of a request begins to be sent; its path at this device.
    case didStartSending(to: ServiceApplication, filename: String, id: String)
    /// The provider has all of a request on its disk: its files may be changed or removed.
    case didFinishSending(to: ServiceApplication, attachments: [String], id: String)
    /// A reply with files begins to come; how many, one or more.
    case willStartReceiving(from: ServiceApplication, count: Int, id: String)
    /// A file of it begins to come: the path that it will have, and its size in bytes.
    case willStartReceivingFile(from: ServiceApplication, path: String, size: UInt64, id: String)
    /// The one result. After this the files have their names, and not before.
    case didReceive(from: ServiceApplication, Result<ServiceReply, ServiceError>, id: String)
    /// A device came with another identity than was accepted. Nothing is sent to it before ``ServiceClient/accept(_:)``.
    case identityChanged(ServiceApplication, fingerprint: String)
}

/// What happens to the requests that a provider is sent, and to its replies.
public enum ServiceProviderEvent: Sendable {
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
    /// The consumer does not want a request any more. Its handler's task is cancelled.
    case cancelled(id: String)
    /// A device came with another identity than was accepted: it is answered ``ServiceError/Code/identityChanged``.
    case identityChanged(ServiceApplication, fingerprint: String)
}

/// AppKinetics' consumer, as a delegate: called one after the other, on no particular thread. The last is required.
public protocol ServiceClientDelegate: AnyObject, Sendable {
    /// A file of a request begins to be sent.
    func serviceClient(
        _ client: ServiceClient, didStartSendingTo application: ServiceApplication, filename: String, id: String)
    /// The provider has all of a request.
    func serviceClient(
        _ client: ServiceClient, didFinishSendingTo application: ServiceApplication, attachments: [String], id: String)
    /// A reply with files begins to come.
    func serviceClient(
        _ client: ServiceClient, willStartReceivingFrom application: ServiceApplication, attachments count: Int, id: String)
    /// A file of it begins to come.
    func serviceClient(
        _ client: ServiceClient, willStartReceivingFrom application: ServiceApplication, path: String, fileSize: UInt64,
        id: String)
    /// The one result of a request.
    func serviceClient(
        _ client: ServiceClient, didReceiveFrom application: ServiceApplication,
        _ result: Result<ServiceReply, ServiceError>, id: String)
}

/// Those that are optional do nothing.
extension ServiceClientDelegate {
    public func serviceClient(
        _ client: ServiceClient, didStartSendingTo application: ServiceApplication, filename: String, id: String
    ) {}
    public func serviceClient(
        _ client: ServiceClient, didFinishSendingTo application: ServiceApplication, attachments: [String], id: String
    ) {}
    public func serviceClient(
        _ client: ServiceClient, willStartReceivingFrom application: ServiceApplication, attachments count: Int, id: String
    ) {}
    public func serviceClient(
        _ client: ServiceClient, willStartReceivingFrom application: ServiceApplication, path: String, fileSize: UInt64,
        id: String
    ) {}
}

typealias ServiceClientListeners = EventListeners<ServiceClient, ServiceClientEvent>
typealias ServiceProviderListeners = EventListeners<ServiceProvider, ServiceProviderEvent>

extension ServiceClientListeners {
    convenience init() {
        self.init(
            calling: Calls(
                added: { _, _ in }, removed: { _, _ in },
                happened: { delegate, event, client in
                    (delegate as? any ServiceClientDelegate)?.hear(event, of: client)
                }))
    }
}

extension ServiceProviderListeners {
    convenience init() { self.init(calling: Calls(added: { _, _ in }, removed: { _, _ in }, happened: { _, _, _ in })) }
}

extension ServiceClientDelegate {
    fileprivate func hear(_ event: ServiceClientEvent, of client: ServiceClient) {
        switch event {
        case .didStartSending(let application, let filename, let id):
            serviceClient(client, didStartSendingTo: application, filename: filename, id: id)
        case .didFinishSending(let application, let attachments, let id):
            serviceClient(client, didFinishSendingTo: application, attachments: attachments, id: id)
        case .willStartReceiving(let application, let count, let id):
            serviceClient(client, willStartReceivingFrom: application, attachments: count, id: id)
        case .willStartReceivingFile(let application, let path, let size, let id):
            serviceClient(client, willStartReceivingFrom: application, path: path, fileSize: size, id: id)
        case .didReceive(let application, let result, let id):
            serviceClient(client, didReceiveFrom: application, result, id: id)
        // Told to listeners of events alone.
        case .identityChanged: break
        }
    }
}
