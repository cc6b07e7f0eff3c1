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
/// A request is handled at least once, each time with the same id, until it has its result; the consumer sees one. What was not offered, and
/// what is switched off, is answered by the library.
public final class ServiceProvider: Sendable {
    let engine: ServiceEngine

    init(engine: ServiceEngine) { self.engine = engine }

    /// Says to the server what this app provides, in place of what it said before; it is said again after each start and by each user of
    /// the device. Requests that come before a method has its handler wait for it.
    ///
    /// - Parameters:
    ///   - name: Of the app, for people: up to 128 bytes.
    ///   - version: Of the app: up to 64 bytes.
    ///   - icon: A picture of the app, in PNG: up to 32 KiB.
    ///   - methods: Of up to 64 versions of services.
    /// - Throws: ``ServiceError`` with ``ServiceError/Code/serviceIDInvalid`` for the id or the version of a service,
    ///   ``ServiceError/Code/serviceMethodNotFound`` for the name of a method, and ``ServiceError/Code/fieldInvalid`` for what is beyond the
    ///   limits above. The call does not wait for the server: what the server refuses is ``ServiceProviderEvent/offerRefused(_:)``.
    public func offer(name: String, version: String, icon: Data? = nil, _ methods: [ServiceMethod]) async throws {
        let offering = try ServiceOffering(name: name, version: version, icon: icon, checking: methods)
        await engine.router.offer(Set(methods))
        await engine.set(offering)
    }

    /// The same by definitions: what comes is held against them, and what is answered; what does not fit is
    /// ``ServiceError/Code/serviceParametersInvalid``.
    ///
    /// - Parameters:
    ///   - name: Of the app, for people: up to 128 bytes.
    ///   - version: Of the app: up to 64 bytes.
    ///   - icon: A picture of the app, in PNG: up to 32 KiB.
    ///   - definitions: Of up to 64 versions of services.
    /// - Throws: As the other; no definition is used then.
    public func offer(name: String, version: String, icon: Data? = nil, _ definitions: [ServiceDefinition]) async throws {
        let methods = definitions.flatMap(\.allMethods)
        let offering = try ServiceOffering(name: name, version: version, icon: icon, checking: methods)
        for definition in definitions { await engine.router.define(definition) }
        await engine.router.offer(Set(methods))
        await engine.set(offering)
    }

    /// Offers nothing any more.
    public func withdraw() async {
        await engine.router.offer([])
        await engine.set(nil)
    }

    /// Sets the handler of a method, in place of the one before; nil removes it.
    ///
    /// The handler's task is cancelled at the request's deadline, and when the consumer does not want it any more. What it throws is the
    /// consumer's result: a ``ServiceError`` as it is, another error as ``ServiceError/Code/serviceFailed``. When the process ended ten times
    /// while the handler ran for one request, the handler is not called again for it: the consumer is answered
    /// ``ServiceError/Code/serviceFailed``, and the app hears ``ServiceProviderEvent/handlerCrashed(_:from:id:)``.
    /// - Parameters:
    ///   - method: What it answers.
    ///   - atMostOnce: It is not called again for a request whose handler a stop of the process interrupted; the consumer is
    ///     answered ``ServiceError/Code/serviceFailed`` then.
    ///   - handler: Answers a request; nil: there is none any more.
    public func handle(
        _ method: ServiceMethod, atMostOnce: Bool = false,
        _ handler: (@Sendable (ServiceRequest) async throws -> ServiceReply)?
    ) async {
        await engine.router.handle(method, handler.map { .init(handler: $0, atMostOnce: atMostOnce) })
    }

    /// Switches a service off, or on again.
    public func setService(_ service: String, isDisabled: Bool) async {
        await engine.router.setService(service, isDisabled: isDisabled)
    }

    /// Switches a version of a service off, or on again.
    public func setVersion(_ version: String, of service: String, isDisabled: Bool) async {
        await engine.router.setVersion(version, of: service, isDisabled: isDisabled)
    }

    /// Switches a method off, or on again.
    public func setMethod(_ method: ServiceMethod, isDisabled: Bool) async {
        await engine.router.setMethod(method, isDisabled: isDisabled)
    }

    /// What happens to the requests that come, from now on.
    ///
    /// For a slow iteration up to 100 events wait, and beside them the newest progress of up to 100 transfers:
    /// ``ServiceProviderEvent/sending(id:bytesSent:of:)`` and ``ServiceProviderEvent/receiving(id:bytesReceived:of:)`` replace the progress before.
    /// Beyond that the oldest progress is dropped for progress, and the oldest start of a file for any other event. A request, a cancellation or
    /// another change is dropped, the oldest first, only when 100 of them wait, or when the values, texts and paths of those that wait have more than
    /// 16 MiB; the newest event is kept whatever its size. After a drop the next event is
    /// ``ServiceProviderEvent/missed(_:)``. Handlers are called for all requests in any case, and their tasks are cancelled with them.
    ///
    /// When the device gets another user or signs out, the events that wait are dropped, and are not counted as missed.
    /// ``ServiceProviderEvent/offerRefused(_:)`` stays.
    public var events: AsyncStream<ServiceProviderEvent> { engine.providerListeners.subscribe() }

    /// How far the files of a request and of the reply to it are: the latest progress for whoever is slow, at most ten a second. The iteration
    /// ends with the request, or with the run of the client; at once for an id that no request has. One progress
    /// waits for a slow iteration: a newer one replaces it.
    public func progress(of id: String) -> AsyncStream<ServiceProgress> { engine.watchProviderProgress(of: id) }

    /// Adds one that receives the same events, but for progress; it is held weakly. Up to 1,000 events and 16 MiB of their content wait for delegates that do
    /// not return. Beyond that the oldest start of a file is dropped, then the oldest other event, and the delegates hear
    /// `didMissEvents`.
    public func addDelegate(_ delegate: any ServiceProviderDelegate) { engine.providerListeners.add(delegate, to: self) }

    /// Removes one.
    public func removeDelegate(_ delegate: any ServiceProviderDelegate) {
        engine.providerListeners.remove(delegate, from: self)
    }

    /// Who this device is to others; nil until it is registered.
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
