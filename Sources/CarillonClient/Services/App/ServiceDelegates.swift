/// AppKinetics' consumer, as a delegate. The methods are called one after the other, on no particular thread. `didReceiveFrom` is
/// required.
public protocol ServiceClientDelegate: AnyObject, Sendable {
    /// The upload of a file of a request begins.
    func serviceClient(
        _ client: ServiceClient, didStartSendingTo application: ServiceApplication, filename: String, id: String)
    /// The provider received the whole request.
    func serviceClient(
        _ client: ServiceClient, didFinishSendingTo application: ServiceApplication, attachments: [String],
        parameters: ServiceValue, id: String)
    /// The download of a reply with files begins.
    func serviceClient(
        _ client: ServiceClient, willStartReceivingFrom application: ServiceApplication, attachments count: Int, id: String)
    /// The download of a file of the reply begins.
    func serviceClient(
        _ client: ServiceClient, willStartReceivingFrom application: ServiceApplication, path: String, fileSize: UInt64,
        id: String)
    /// The result of a request arrived. When this returns, the result counts as confirmed: it is not reported in the next run. A
    /// result for which the process ended ten times is removed.
    func serviceClient(
        _ client: ServiceClient, didReceiveFrom application: ServiceApplication,
        _ result: Result<ServiceReply, ServiceError>, id: String)
    /// A result that the app did not confirm was removed: see ``ServiceClientEvent/resultRemoved(from:id:reason:)``. The default
    /// implementation of the method with a reason calls this method.
    func serviceClient(_ client: ServiceClient, didRemoveResultFrom application: ServiceApplication, id: String)
    /// A result that the app did not confirm was removed, for a reason.
    func serviceClient(
        _ client: ServiceClient, didRemoveResultFrom application: ServiceApplication, id: String, reason: ResultRemoval)
    /// An installation presented another identity than the accepted one. No request is sent to it before
    /// ``ServiceClient/accept(_:fingerprint:)``.
    func serviceClient(_ client: ServiceClient, identityChanged application: ServiceApplication, fingerprint: String)
    /// Calls were dropped, because the delegate did not return in time; `count` is their number. Up to 1,000 events and 16 MiB of
    /// their content wait for the delegates. Results that wait for a confirmation are not dropped and not counted: see
    /// ``ServiceClient/replies``.
    func serviceClient(_ client: ServiceClient, didMissEvents count: Int)
}

/// The default implementations do nothing, except that the removal of a result with a reason calls the method without a reason.
extension ServiceClientDelegate {
    public func serviceClient(
        _ client: ServiceClient, didStartSendingTo application: ServiceApplication, filename: String, id: String
    ) {}
    public func serviceClient(
        _ client: ServiceClient, didFinishSendingTo application: ServiceApplication, attachments: [String],
        parameters: ServiceValue, id: String
    ) {}
    public func serviceClient(
        _ client: ServiceClient, willStartReceivingFrom application: ServiceApplication, attachments count: Int, id: String
    ) {}
    public func serviceClient(
        _ client: ServiceClient, willStartReceivingFrom application: ServiceApplication, path: String, fileSize: UInt64,
        id: String
    ) {}
    public func serviceClient(_ client: ServiceClient, didRemoveResultFrom application: ServiceApplication, id: String) {}
    public func serviceClient(
        _ client: ServiceClient, didRemoveResultFrom application: ServiceApplication, id: String, reason: ResultRemoval
    ) { serviceClient(client, didRemoveResultFrom: application, id: id) }
    public func serviceClient(
        _ client: ServiceClient, identityChanged application: ServiceApplication, fingerprint: String
    ) {}
    public func serviceClient(_ client: ServiceClient, didMissEvents count: Int) {}
}

/// The delegate of a provider, which is called in the same way. All methods are optional, because handlers reply to requests.
public protocol ServiceProviderDelegate: AnyObject, Sendable {
    /// The download of a request with files begins.
    func serviceProvider(
        _ provider: ServiceProvider, willStartReceivingFrom application: ServiceApplication, attachments count: Int,
        id: String)
    /// The download of a file of the request begins.
    func serviceProvider(
        _ provider: ServiceProvider, willStartReceivingFrom application: ServiceApplication, path: String, fileSize: UInt64,
        id: String)
    /// A request arrived with all its files; its handler is called. After the app set another user, the call waits until the
    /// server accepts or rejects that user, and is not made for a former user.
    func serviceProvider(_ provider: ServiceProvider, didReceive request: ServiceRequest)
    /// The upload of a file of a reply begins.
    func serviceProvider(
        _ provider: ServiceProvider, didStartSendingTo application: ServiceApplication, filename: String, id: String)
    /// The server received a reply.
    func serviceProvider(
        _ provider: ServiceProvider, didFinishSendingTo application: ServiceApplication, attachments: [String], id: String)
    /// A request ended without a result, because it could not be stored here: see
    /// ``ServiceProviderEvent/requestFailed(from:_:id:)``.
    func serviceProvider(
        _ provider: ServiceProvider, didFailRequestFrom application: ServiceApplication, _ error: ServiceError, id: String)
    /// The process ended ten times while the handler of a request ran. The handler is not called again for it.
    func serviceProvider(
        _ provider: ServiceProvider, handlerCrashedFor method: ServiceMethod, from application: ServiceApplication,
        id: String)
    /// The consumer cancelled a request.
    func serviceProvider(_ provider: ServiceProvider, didCancel id: String)
    /// Another app requests that this one comes to the front of the screen.
    func serviceProvider(_ provider: ServiceProvider, isAskedToFrontBy application: ServiceApplication)
    /// The server rejected the app's offer.
    func serviceProvider(_ provider: ServiceProvider, offerWasRefused error: ServiceError)
    /// An installation presented another identity than the accepted one. Its requests end with
    /// ``ServiceError/Code/identityChanged`` until ``ServiceProvider/accept(_:fingerprint:)``.
    func serviceProvider(_ provider: ServiceProvider, identityChanged application: ServiceApplication, fingerprint: String)
    /// Calls were dropped, because the delegate did not return in time; `count` is their number. Up to 1,000 events and 16 MiB of
    /// their content wait for the delegates. Handlers are called for all requests in any case.
    func serviceProvider(_ provider: ServiceProvider, didMissEvents count: Int)
}

/// The default implementations do nothing.
extension ServiceProviderDelegate {
    public func serviceProvider(
        _ provider: ServiceProvider, willStartReceivingFrom application: ServiceApplication, attachments count: Int,
        id: String
    ) {}
    public func serviceProvider(
        _ provider: ServiceProvider, willStartReceivingFrom application: ServiceApplication, path: String, fileSize: UInt64,
        id: String
    ) {}
    public func serviceProvider(_ provider: ServiceProvider, didReceive request: ServiceRequest) {}
    public func serviceProvider(
        _ provider: ServiceProvider, didStartSendingTo application: ServiceApplication, filename: String, id: String
    ) {}
    public func serviceProvider(
        _ provider: ServiceProvider, didFinishSendingTo application: ServiceApplication, attachments: [String], id: String
    ) {}
    public func serviceProvider(
        _ provider: ServiceProvider, didFailRequestFrom application: ServiceApplication, _ error: ServiceError, id: String
    ) {}
    public func serviceProvider(
        _ provider: ServiceProvider, handlerCrashedFor method: ServiceMethod, from application: ServiceApplication,
        id: String
    ) {}
    public func serviceProvider(_ provider: ServiceProvider, didCancel id: String) {}
    public func serviceProvider(_ provider: ServiceProvider, isAskedToFrontBy application: ServiceApplication) {}
    public func serviceProvider(_ provider: ServiceProvider, offerWasRefused error: ServiceError) {}
    public func serviceProvider(
        _ provider: ServiceProvider, identityChanged application: ServiceApplication, fingerprint: String
    ) {}
    public func serviceProvider(_ provider: ServiceProvider, didMissEvents count: Int) {}
}

typealias ServiceClientListeners = EventListeners<ServiceClient, ServiceClientEvent>
typealias ServiceProviderListeners = EventListeners<ServiceProvider, ServiceProviderEvent>

extension ServiceClientListeners {
    convenience init() {
        self.init(
            calling: Calls(
                added: { _, _ in }, removed: { _, _ in },
                happened: { delegate, event, client in
                    (delegate as? any ServiceClientDelegate)?.dispatch(event, of: client)
                },
                willHappen: { event, client in
                    guard case .didReceive(_, _, let id) = event else { return true }
                    return await client.engine.willCallDelegate(with: id)
                },
                finished: { event, client, wasDelivered in
                    guard case .didReceive(_, _, let id) = event else { return }
                    client.engine.delegatesFinished(id, wasDelivered: wasDelivered)
                }))
    }
}

extension ServiceProviderListeners {
    convenience init() {
        self.init(
            calling: Calls(
                added: { _, _ in }, removed: { _, _ in },
                happened: { delegate, event, provider in
                    (delegate as? any ServiceProviderDelegate)?.dispatch(event, of: provider)
                },
                willHappen: { event, provider in
                    guard case .didReceive = event else { return true }
                    return await provider.engine.willCallDelegateWithRequest()
                }))
    }
}

extension ServiceClientDelegate {
    fileprivate func dispatch(_ event: ServiceClientEvent, of client: ServiceClient) {
        switch event {
        case .missed(let count): serviceClient(client, didMissEvents: count)
        case .didStartSending(let application, let filename, let id):
            serviceClient(client, didStartSendingTo: application, filename: filename, id: id)
        case .didFinishSending(let application, let attachments, let parameters, let id):
            serviceClient(
                client, didFinishSendingTo: application, attachments: attachments, parameters: parameters, id: id)
        case .willStartReceiving(let application, let count, let id):
            serviceClient(client, willStartReceivingFrom: application, attachments: count, id: id)
        case .willStartReceivingFile(let application, let path, let size, let id):
            serviceClient(client, willStartReceivingFrom: application, path: path, fileSize: size, id: id)
        case .didReceive(let application, let result, let id):
            guard client.engine.delegateResults.begins(id) else { break }
            serviceClient(client, didReceiveFrom: application, result, id: id)
            client.engine.delegateReturned(id)
        case .resultRemoved(let application, let id, let reason):
            serviceClient(client, didRemoveResultFrom: application, id: id, reason: reason)
        case .identityChanged(let application, let fingerprint):
            serviceClient(client, identityChanged: application, fingerprint: fingerprint)
        // Only iterations receive these events.
        case .sending, .receiving: break
        }
    }
}

extension ServiceProviderDelegate {
    fileprivate func dispatch(_ event: ServiceProviderEvent, of provider: ServiceProvider) {
        switch event {
        case .missed(let count): serviceProvider(provider, didMissEvents: count)
        case .willStartReceiving(let application, let count, let id):
            serviceProvider(provider, willStartReceivingFrom: application, attachments: count, id: id)
        case .willStartReceivingFile(let application, let path, let size, let id):
            serviceProvider(provider, willStartReceivingFrom: application, path: path, fileSize: size, id: id)
        case .didReceive(let request): serviceProvider(provider, didReceive: request)
        case .didStartSending(let application, let filename, let id):
            serviceProvider(provider, didStartSendingTo: application, filename: filename, id: id)
        case .didFinishSending(let application, let attachments, let id):
            serviceProvider(provider, didFinishSendingTo: application, attachments: attachments, id: id)
        case .requestFailed(let application, let error, let id):
            serviceProvider(provider, didFailRequestFrom: application, error, id: id)
        case .handlerCrashed(let method, let application, let id):
            serviceProvider(provider, handlerCrashedFor: method, from: application, id: id)
        case .cancelled(let id): serviceProvider(provider, didCancel: id)
        case .frontRequested(let application): serviceProvider(provider, isAskedToFrontBy: application)
        case .offerRefused(let error): serviceProvider(provider, offerWasRefused: error)
        case .identityChanged(let application, let fingerprint):
            serviceProvider(provider, identityChanged: application, fingerprint: fingerprint)
        // Only iterations receive these events.
        case .sending, .receiving: break
        }
    }
}
