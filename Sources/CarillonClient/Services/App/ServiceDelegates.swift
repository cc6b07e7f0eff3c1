/// AppKinetics' consumer, as a delegate: called one after the other, on no particular thread. `didReceiveFrom` is required.
public protocol ServiceClientDelegate: AnyObject, Sendable {
    /// A file of a request begins to be sent.
    func serviceClient(
        _ client: ServiceClient, didStartSendingTo application: ServiceApplication, filename: String, id: String)
    /// The provider has all of a request.
    func serviceClient(
        _ client: ServiceClient, didFinishSendingTo application: ServiceApplication, attachments: [String],
        parameters: ServiceValue, id: String)
    /// A reply with files begins to come.
    func serviceClient(
        _ client: ServiceClient, willStartReceivingFrom application: ServiceApplication, attachments count: Int, id: String)
    /// A file of it begins to come.
    func serviceClient(
        _ client: ServiceClient, willStartReceivingFrom application: ServiceApplication, path: String, fileSize: UInt64,
        id: String)
    /// The one result of a request. When this returns, the result counts as confirmed: it is not reported in the next run. A result with which the
    /// process ended ten times is removed.
    func serviceClient(
        _ client: ServiceClient, didReceiveFrom application: ServiceApplication,
        _ result: Result<ServiceReply, ServiceError>, id: String)
    /// A result that the app did not confirm was removed: see ``ServiceClientEvent/resultRemoved(from:id:reason:)``. The default
    /// implementation of the method with a reason calls this method.
    func serviceClient(_ client: ServiceClient, didRemoveResultFrom application: ServiceApplication, id: String)
    /// A result that the app did not confirm was removed, for a reason.
    func serviceClient(
        _ client: ServiceClient, didRemoveResultFrom application: ServiceApplication, id: String, reason: ResultRemoval)
    /// An install came with another identity than was accepted. Nothing is sent to it before ``ServiceClient/accept(_:fingerprint:)``.
    func serviceClient(_ client: ServiceClient, identityChanged application: ServiceApplication, fingerprint: String)
    /// Calls were dropped, as the delegate did not return in time; how many. Up to 1,000 events and 16 MiB of their content wait for the delegates.
    /// Results that wait for a confirmation are not dropped and not counted: see ``ServiceClient/replies``.
    func serviceClient(_ client: ServiceClient, didMissEvents count: Int)
}

/// The optional methods do nothing, except that the removal of a result with a reason calls the method without a reason.
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

/// The provider's side of it; called in the same way. All are optional: a request is answered by its handler.
public protocol ServiceProviderDelegate: AnyObject, Sendable {
    /// A request with files begins to come.
    func serviceProvider(
        _ provider: ServiceProvider, willStartReceivingFrom application: ServiceApplication, attachments count: Int,
        id: String)
    /// A file of it begins to come.
    func serviceProvider(
        _ provider: ServiceProvider, willStartReceivingFrom application: ServiceApplication, path: String, fileSize: UInt64,
        id: String)
    /// A request is here with all its files; its handler is called. While the app names another user, the call waits until the server takes or
    /// refuses that user, and is not made for a former user.
    func serviceProvider(_ provider: ServiceProvider, didReceive request: ServiceRequest)
    /// A file of a reply begins to be sent.
    func serviceProvider(
        _ provider: ServiceProvider, didStartSendingTo application: ServiceApplication, filename: String, id: String)
    /// The server has a reply.
    func serviceProvider(
        _ provider: ServiceProvider, didFinishSendingTo application: ServiceApplication, attachments: [String], id: String)
    /// A request ended without a result, as it could not be stored here: see ``ServiceProviderEvent/requestFailed(from:_:id:)``.
    func serviceProvider(
        _ provider: ServiceProvider, didFailRequestFrom application: ServiceApplication, _ error: ServiceError, id: String)
    /// The process ended ten times while the handler of a request ran: the handler is not called again for it.
    func serviceProvider(
        _ provider: ServiceProvider, handlerCrashedFor method: ServiceMethod, from application: ServiceApplication,
        id: String)
    /// The consumer does not want a request any more.
    func serviceProvider(_ provider: ServiceProvider, didCancel id: String)
    /// Another app asks this one to come to the front of the screen.
    func serviceProvider(_ provider: ServiceProvider, isAskedToFrontBy application: ServiceApplication)
    /// The server refused what the app offers.
    func serviceProvider(_ provider: ServiceProvider, offerWasRefused error: ServiceError)
    /// An install came with another identity than was accepted. Its requests end with ``ServiceError/Code/identityChanged`` before
    /// ``ServiceProvider/accept(_:fingerprint:)``.
    func serviceProvider(_ provider: ServiceProvider, identityChanged application: ServiceApplication, fingerprint: String)
    /// Calls were dropped, as the delegate did not return in time; how many. Up to 1,000 events and 16 MiB of their content wait for the delegates.
    /// Handlers are called for all requests in any case.
    func serviceProvider(_ provider: ServiceProvider, didMissEvents count: Int)
}

/// Each does nothing.
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
                    (delegate as? any ServiceClientDelegate)?.hear(event, of: client)
                },
                willHappen: { event, client in
                    guard case .didReceive(_, _, let id) = event else { return true }
                    return await client.engine.willCallDelegate(with: id)
                },
                finished: { event, client, wasHeard in
                    guard case .didReceive(_, _, let id) = event else { return }
                    client.engine.delegatesFinished(id, wasHeard: wasHeard)
                }))
    }
}

extension ServiceProviderListeners {
    convenience init() {
        self.init(
            calling: Calls(
                added: { _, _ in }, removed: { _, _ in },
                happened: { delegate, event, provider in
                    (delegate as? any ServiceProviderDelegate)?.hear(event, of: provider)
                },
                willHappen: { event, provider in
                    guard case .didReceive = event else { return true }
                    return await provider.engine.willCallDelegateWithRequest()
                }))
    }
}

extension ServiceClientDelegate {
    fileprivate func hear(_ event: ServiceClientEvent, of client: ServiceClient) {
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
            guard client.engine.heard.begins(id) else { break }
            serviceClient(client, didReceiveFrom: application, result, id: id)
            client.engine.delegateReturned(id)
        case .resultRemoved(let application, let id, let reason):
            serviceClient(client, didRemoveResultFrom: application, id: id, reason: reason)
        case .identityChanged(let application, let fingerprint):
            serviceClient(client, identityChanged: application, fingerprint: fingerprint)
        // Reported to listeners of events alone.
        case .sending, .receiving: break
        }
    }
}

extension ServiceProviderDelegate {
    fileprivate func hear(_ event: ServiceProviderEvent, of provider: ServiceProvider) {
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
        // Reported to listeners of events alone.
        case .sending, .receiving: break
        }
    }
}
