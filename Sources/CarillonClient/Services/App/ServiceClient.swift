import CarillonBasics
import CarillonWire

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// Asks services of other apps: ``PushClient/serviceClient``.
///
/// ```swift
/// let send = ServiceMethod("com.good.gdservice.transfer-file", "1.0.0.0", "transferFile")
/// let reply = try await client.serviceClient.call(send, of: .init(app: "com.example.files"), attachments: ["report.pdf"])
/// ```
///
/// The device must belong to a user (``PushDevice/setUser(_:)``): it may call apps of that user, on any of his devices, in its own app
/// and in those that the operator put into one realm with it. Requests are sealed from device to device. Who an install is, is believed when
/// it is first met, and held against that from then on; ``FoundProvider/fingerprint`` is there to be compared.
public final class ServiceClient: Sendable {
    let engine: ServiceEngine

    init(engine: ServiceEngine) { self.engine = engine }

    /// Who provides services that this device may call: those that are connected first, then those that were last seen.
    ///
    /// - Parameters:
    ///   - service: Its id; without one, all who offer any.
    ///   - version: Of the service; without one, any.
    ///   - type: Devices of users, or servers; without one, both.
    ///   - user: Whose devices; only a server says so, and others find those of their own user.
    /// - Throws: ``ServiceError``, with ``ServiceError/Code/serviceIDInvalid`` if `service` or `version` is not valid; and
    ///   `CancellationError`.
    public func providers(
        of service: String? = nil, version: String? = nil, type: FoundProvider.Kind? = nil, user: String? = nil
    ) async throws -> [FoundProvider] {
        let problem = service.flatMap { ServiceID.problem(in: $0) } ?? version.flatMap { ServiceVersion.problem(in: $0) }
        if let problem { throw ServiceError(.serviceIDInvalid, problem) }
        return try await engine.find([
            ("service", service), ("version", version), ("type", type?.rawValue), ("user", user),
        ]).map(\.provider)
    }

    /// Who provides services: the present list at once, and another each time that it is one. Somebody who comes or goes is heard of while the
    /// device is connected, and at each connection; of servers it is heard at connections alone.
    ///
    /// One list waits for a slow iteration, the newest: it replaces the one before, and nothing has to be read again.
    public var providerChanges: AsyncStream<[FoundProvider]> { engine.watchProviders() }

    /// The picture of a provider, in PNG; nil where it has none.
    public func icon(of provider: FoundProvider) async throws -> Data? {
        provider.icon == nil ? nil : try await engine.icon(of: provider.application)
    }

    /// Asks an app to come to the front of the screen; whether it does is its own affair. Only one that is connected is asked.
    ///
    /// - Throws: ``ServiceError``, with ``ServiceError/Code/providerSuspended`` where it is not connected, and with
    ///   ``ServiceError/Code/deadlineExceeded`` after ten seconds; and `CancellationError`.
    public func bringToFront(_ address: ServiceApplication) async throws {
        _ = try await call(.frontRequest, of: address, deadline: .seconds(10), foreground: .preferPeer)
    }

    /// Asks, and waits for the one result.
    ///
    /// When the task is cancelled the request is taken back, or its provider is notified that it is not wanted. When the process ends, the result
    /// is in ``replies`` of the next run.
    ///
    /// The deadline bounds the whole call: the registration of the device, the lookup of the provider, the transfer of the files, the server's
    /// answer and the result. At the deadline the call throws ``ServiceError/Code/deadlineExceeded``, or
    /// ``ServiceError/Code/storageUnavailable`` if it waits for the storage of this device; its files are removed from the server,
    /// and the request is taken back as after a cancellation.
    /// - Parameters:
    ///   - method: What is asked.
    ///   - address: An install of an app, or an app alone: the install that is connected, or was last seen.
    ///   - parameters: What goes along: up to 1 MiB.
    ///   - attachments: Paths of up to 32 files. A relative path travels as it is, without components `.`; of another its last part does.
    ///   - deadline: How long the call may last, from now on: a second to seven days. The provider has what is left when the request is sent,
    ///     in whole seconds, rounded up.
    ///   - foreground: Reported to the provider, and never acted on.
    ///   - id: An id of ``makeRequestID()``, to cancel the request and to watch its progress before it is sent; nil for a new one.
    /// - Throws: ``ServiceError``, and `CancellationError`.
    public func call(
        _ method: ServiceMethod, of address: ServiceApplication, _ parameters: ServiceValue = .null,
        attachments: [String] = [], deadline: Duration = .seconds(3600), foreground: ForegroundPreference = .none,
        id: String? = nil
    ) async throws -> ServiceReply {
        let call = ServiceCall(
            id: id ?? makeRequestID(), method: method, to: address, parameters: parameters, attachments: attachments,
            deadline: deadline, foreground: foreground)
        return try await engine.result(of: call)
    }

    /// The same with parameters and a result of the app's own types; of the reply's files nothing is said.
    public func call<Value: Decodable>(
        _ method: ServiceMethod, of address: ServiceApplication, encoding parameters: some Encodable & Sendable,
        attachments: [String] = [], deadline: Duration = .seconds(3600), foreground: ForegroundPreference = .none,
        id: String? = nil, as type: Value.Type = Value.self
    ) async throws -> Value {
        try await call(
            method, of: address, try ServiceValue(encoding: parameters), attachments: attachments, deadline: deadline,
            foreground: foreground, id: id
        ).value.decode(type)
    }

    /// Asks, and returns when the server has the request; the result comes by ``events``, a delegate, and ``replies``.
    ///
    /// If the server does not have the request at the deadline, this throws ``ServiceError/Code/deadlineExceeded``, and cleans up as `call` does. Once the
    /// server has it, the provider can answer until the deadline, and the result waits for this device at the server for up to a week.
    /// - Returns: The request's id.
    /// - Throws: ``ServiceError``, and `CancellationError`.
    public func send(
        _ method: ServiceMethod, to address: ServiceApplication, _ parameters: ServiceValue = .null,
        attachments: [String] = [], deadline: Duration = .seconds(3600), foreground: ForegroundPreference = .none,
        id: String? = nil
    ) async throws -> String {
        let call = ServiceCall(
            id: id ?? makeRequestID(), method: method, to: address, parameters: parameters, attachments: attachments,
            deadline: deadline, foreground: foreground)
        try await engine.send(call, result: nil)
        return call.id
    }

    /// Makes the id of a request to come, for the parameter `id` of ``call(_:of:_:attachments:deadline:foreground:id:)`` and
    /// ``send(_:to:_:attachments:deadline:foreground:id:)``. With it the app can cancel the request, and watch its progress, from now on.
    ///
    /// An id is for one request. Of the ids that are not used yet, the newest 1,000 can be cancelled.
    public func makeRequestID() -> String { engine.requestIDs.make() }

    /// How far the files of a request and of its reply are: the latest progress for whoever is slow, at most ten a second. The iteration ends
    /// with the request, at once for an id that no request has. Of a request without files nothing comes before the end. One progress
    /// waits for a slow iteration: a newer one replaces it.
    ///
    /// - Parameter id: The id of a request that has not ended, or of ``makeRequestID()``.
    public func progress(of id: String) -> AsyncStream<ServiceProgress> { engine.watchConsumerProgress(of: id) }

    /// Results that no ``call(_:of:_:attachments:deadline:foreground:id:)`` waits for: of an earlier run, and of
    /// ``send(_:to:_:attachments:deadline:foreground:id:)``. One iteration at a time.
    ///
    /// Each comes again in the next run until it is confirmed: by ``LateReply/confirm()``, or by a ``ServiceClientDelegate`` that returned from
    /// `didReceiveFrom`. Without a confirmation a result is kept for seven days. At most 1,000 results are kept, and 64 MiB with their
    /// files; beyond that the oldest are removed with their files, and ``ServiceClientEvent/resultRemoved(from:id:reason:)`` names each. The
    /// newest result is kept, whatever its size is.
    ///
    /// A result with which the process ended ten times, before the iteration asked for the next one, is removed in the same way at the next
    /// start. The end of the client, and the end of an iteration by `break`, an error or cancellation, do not count.
    public var replies: AsyncStream<LateReply> { engine.replies() }

    /// Takes a request back, from ``makeRequestID()`` on.
    ///
    /// A request that is still being sent ends at once: its `call` or `send` throws ``ServiceError/Code/cancelled``, its upload stops, and the
    /// files that were uploaded are removed from the server. If the server has the request all the same, it is asked to cancel it.
    ///
    /// - Returns: True: the request has no result. False: it was delivered before, its provider is notified, and its result comes all the same.
    /// - Throws: ``ServiceError`` with ``ServiceError/Code/requestUnknown`` for an id that no request has, and for one that has its result; with
    ///   ``ServiceError/Code/deadlineExceeded`` if the server cannot be reached for 30 seconds; and `CancellationError`.
    public func cancel(_ id: String) async throws -> Bool { try await engine.cancel(id) }

    /// The same of all requests to an install of an app. Answers how many were not delivered.
    public func cancelAll(to application: ServiceApplication) async throws -> Int {
        try await engine.cancelAll(to: application)
    }

    /// Waits until the server knows of all that was cancelled, or for a time. What it does not know by then it hears in the next run.
    package func waitForRemovals(atMost limit: Duration) async { await engine.waitForRemovals(atMost: limit) }

    /// From now on what is asked by it is held against it before it is sent, and what comes back, too; what does not fit is
    /// ``ServiceError/Code/serviceParametersInvalid``.
    public func use(_ definitions: ServiceDefinition...) async {
        for definition in definitions { await engine.router.define(definition) }
    }

    // MARK: Hearing

    /// What happens to this device's requests, from now on.
    ///
    /// For a slow iteration up to 100 events wait, and beside them the newest progress of up to 100 transfers:
    /// ``ServiceClientEvent/sending(id:bytesSent:of:)`` and ``ServiceClientEvent/receiving(id:bytesReceived:of:)`` replace the progress before.
    /// Beyond that the oldest progress is dropped for progress, and the oldest start of a file for any other event. A result, an arrival or a
    /// changed identity is dropped, the oldest first, only when 100 of them wait, or when the values, texts and paths of those that wait have more
    /// than 16 MiB; the newest event is kept whatever its size. After a drop the next event is
    /// ``ServiceClientEvent/missed(_:)``. Results of ``send(_:to:_:attachments:deadline:foreground:id:)`` can be read from ``replies``; those of
    /// ``call(_:of:_:attachments:deadline:foreground:id:)`` are returned to its caller.
    ///
    /// When the device gets another user or signs out, the events that wait are dropped, and are not counted as missed.
    public var events: AsyncStream<ServiceClientEvent> { engine.clientListeners.subscribe() }

    /// Adds one that receives the same events, but for progress; it is held weakly. Up to 1,000 events and 16 MiB of their content wait for delegates that do
    /// not return. Beyond that the oldest start of a file is dropped, then the oldest other event, and the delegates hear
    /// `didMissEvents`. A result that waits for a confirmation (``replies``) is not dropped.
    public func addDelegate(_ delegate: any ServiceClientDelegate) { engine.clientListeners.add(delegate, to: self) }

    /// Removes one.
    public func removeDelegate(_ delegate: any ServiceClientDelegate) { engine.clientListeners.remove(delegate, from: self) }

    // MARK: Identities

    /// Is asked whether an install is who it says to be: with its fingerprint, and whether it is met for the first time or has changed.
    /// Without one the first is believed, and a change is not.
    public func setIdentityVerifier(
        _ verify: (@Sendable (_ application: ServiceApplication, _ fingerprint: String, _ isFirst: Bool) async -> Bool)?
    ) async {
        await engine.setVerifier(verify)
    }

    /// Accepts the identity that an install came with last. Answers false when there is none but the accepted one.
    public func accept(_ application: ServiceApplication) async throws -> Bool {
        guard let device = application.device else { return false }
        return try await engine.accept(device)
    }
}
