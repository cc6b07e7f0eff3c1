import CarillonBasics
import CarillonWire

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// Offers services to other apps: ``PushClient/serviceProvider``.
///
/// ```swift
/// let transfer = ServiceMethod("com.good.gdservice.transfer-file", "1.0.0.0", "transferFile")
/// await client.serviceProvider.handle(transfer) { request in
///     try keep(request.attachments)
///     return ServiceReply()
/// }
/// try await client.serviceProvider.offer(name: "Files", version: "2.1", [transfer])
/// ```
///
/// A request is handled at least once, each time with the same id, until it has its result. The consumer receives one result. The
/// library rejects requests for methods that are not offered or are disabled.
public final class ServiceProvider: Sendable {
    let engine: ServiceEngine

    init(engine: ServiceEngine) { self.engine = engine }

    /// Sets the services that this app offers, in place of the former offer. The offer is sent to the server after each start and
    /// for each user of the device. Requests that arrive before a method has its handler wait for it.
    ///
    /// - Parameters:
    ///   - name: The name of the app, for people: up to 128 bytes.
    ///   - version: The version of the app: up to 64 bytes.
    ///   - icon: An icon of the app, in PNG: up to 32 KiB.
    ///   - methods: Methods of up to 64 versions of services.
    /// - Throws: ``ServiceError`` with ``ServiceError/Code/serviceIDInvalid`` for the id or the version of a service,
    ///   ``ServiceError/Code/serviceMethodNotFound`` for the name of a method, and ``ServiceError/Code/fieldInvalid`` for a value
    ///   beyond the limits above. The call does not wait for the server: a rejection by the server is reported as
    ///   ``ServiceProviderEvent/offerRefused(_:)``.
    public func offer(name: String, version: String, icon: Data? = nil, _ methods: [ServiceMethod]) async throws {
        let offering = try ServiceOffering(name: name, version: version, icon: icon, checking: methods)
        await engine.router.offer(Set(methods))
        await engine.set(offering)
    }

    /// Does the same with definitions. Requests and replies are checked against them; invalid ones fail with
    /// ``ServiceError/Code/serviceParametersInvalid``.
    ///
    /// - Parameters:
    ///   - name: The name of the app, for people: up to 128 bytes.
    ///   - version: The version of the app: up to 64 bytes.
    ///   - icon: An icon of the app, in PNG: up to 32 KiB.
    ///   - definitions: Definitions of up to 64 versions of services.
    /// - Throws: The same errors; no definition is used then.
    public func offer(name: String, version: String, icon: Data? = nil, _ definitions: [ServiceDefinition]) async throws {
        let methods = definitions.flatMap(\.allMethods)
        let offering = try ServiceOffering(name: name, version: version, icon: icon, checking: methods)
        for definition in definitions { await engine.router.define(definition) }
        await engine.router.offer(Set(methods))
        await engine.set(offering)
    }

    /// Withdraws the offer.
    public func withdraw() async {
        await engine.router.offer([])
        await engine.set(nil)
    }

    /// Sets the handler of a method, in place of the former one; nil removes it.
    ///
    /// The handler's task is cancelled at the request's deadline, and when the consumer cancels the request. An error of the
    /// handler is the consumer's result: a ``ServiceError`` unchanged, another error as ``ServiceError/Code/serviceFailed``. If
    /// the process ended ten times while the handler ran for one request, the handler is not called again for it: the consumer
    /// receives ``ServiceError/Code/serviceFailed``, and the app receives ``ServiceProviderEvent/handlerCrashed(_:from:id:)``.
    ///
    /// - Parameters:
    ///   - method: The method that the handler implements.
    ///   - atMostOnce: Whether the handler is not called again for a request that the end of the process interrupted. The
    ///     consumer receives ``ServiceError/Code/serviceFailed`` then.
    ///   - handler: Returns the reply to a request; nil removes the handler.
    public func handle(
        _ method: ServiceMethod, atMostOnce: Bool = false,
        _ handler: (@Sendable (ServiceRequest) async throws -> ServiceReply)?
    ) async {
        await engine.router.handle(method, handler.map { .init(handler: $0, atMostOnce: atMostOnce) })
    }

    /// Disables or enables a service.
    public func setService(_ service: String, isDisabled: Bool) async {
        await engine.router.setService(service, isDisabled: isDisabled)
    }

    /// Disables or enables a version of a service.
    public func setVersion(_ version: String, of service: String, isDisabled: Bool) async {
        await engine.router.setVersion(version, of: service, isDisabled: isDisabled)
    }

    /// Disables or enables a method.
    public func setMethod(_ method: ServiceMethod, isDisabled: Bool) async {
        await engine.router.setMethod(method, isDisabled: isDisabled)
    }

    /// The events of the requests that arrive, from now on.
    ///
    /// For a slow iteration up to 100 events wait, and in addition the newest progress of up to 100 transfers:
    /// ``ServiceProviderEvent/sending(id:bytesSent:of:)`` and ``ServiceProviderEvent/receiving(id:bytesReceived:of:)`` replace
    /// the progress before. Beyond that a new progress drops the oldest progress, and another event drops the oldest start of a
    /// file. A request, a cancellation or another change is dropped, the oldest first, only if 100 of them wait, or if the
    /// values, texts and paths of the waiting events have more than 16 MiB. The newest event is always kept. After a
    /// drop the next event is ``ServiceProviderEvent/missed(_:)``. Handlers are called for all requests in any case, and their
    /// tasks are cancelled with them.
    ///
    /// When the device gets another user or signs out, the waiting events are dropped, and are not counted as missed.
    /// ``ServiceProviderEvent/offerRefused(_:)`` stays.
    public var events: AsyncStream<ServiceProviderEvent> { engine.providerListeners.subscribe() }

    /// The progress of the files of a request and of the reply to it, up to ten times per second. The iteration ends with the
    /// request, or with the run of the client, and at once for the id of no request. Only the newest progress waits for a slow
    /// iteration: it replaces the progress before.
    public func progress(of id: String) -> AsyncStream<ServiceProgress> { engine.watchProviderProgress(of: id) }

    /// Adds a delegate, which receives the same events except progress. The delegate is referenced weakly. Up to 1,000 events and
    /// 16 MiB of their content wait for delegates that do not return. Beyond that the oldest start of a file is dropped, then the
    /// oldest other event, and `didMissEvents` is called.
    public func addDelegate(_ delegate: any ServiceProviderDelegate) { engine.providerListeners.add(delegate, to: self) }

    /// Removes a delegate.
    public func removeDelegate(_ delegate: any ServiceProviderDelegate) {
        engine.providerListeners.remove(delegate, from: self)
    }

    /// The address of this device for other apps; nil until it is registered.
    public var application: ServiceApplication? { engine.ownPeer.map(ServiceApplication.init) }

    /// The fingerprint of this device's identity, for people to compare.
    ///
    /// The identity belongs to the device and its user: the call waits until the device is registered and the server has confirmed its
    /// user. The client must run.
    /// - Throws: ``ServiceError`` with ``ServiceError/Code/serverUnavailable`` after 30 seconds, with the reason;
    ///   `CancellationError`; ``PushError`` of the storage.
    public var fingerprint: String {
        get async throws {
            try await engine.ready()
            return try await engine.box.keys(at: ServiceEngine.now).fingerprint
        }
    }
}
