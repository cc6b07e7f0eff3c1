import CarillonBasics
import CarillonWire

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// Calls the services of other apps: ``PushClient/serviceClient``.
///
/// ```swift
/// let send = ServiceMethod("com.good.gdservice.transfer-file", "1.0.0.0", "transferFile")
/// let reply = try await client.serviceClient.call(send, of: .init(app: "com.example.files"), attachments: ["report.pdf"])
/// ```
///
/// The device must belong to a user (``PushDevice/setUser(_:)``). It can call apps on any device of that user: its own app, and
/// the apps that the operator put into one realm with it. Requests are sealed from device to device. The identity of another
/// installation is accepted when it is first seen, and must not change afterwards. People can compare
/// ``FoundProvider/fingerprint``.
public final class ServiceClient: Sendable {
    let engine: ServiceEngine

    init(engine: ServiceEngine) { self.engine = engine }

    /// Returns the providers that this device can call: connected ones first, then those that were last seen.
    ///
    /// - Parameters:
    ///   - service: The id of a service; nil for providers of any service.
    ///   - version: The version of the service; nil for any version.
    ///   - type: Devices of users, or servers; nil for both.
    ///   - user: The user of the devices. Only a server can set it; other devices find the devices of their own user.
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

    /// The providers of services: the present list at once, and each changed list. Changes are reported while the device is
    /// connected, and at each connection. Changes of servers are reported only at connections.
    ///
    /// Only the newest list waits for a slow iteration. It replaces the list before, and is complete.
    public var providerChanges: AsyncStream<[FoundProvider]> { engine.watchProviders() }

    /// Returns the icon of a provider, in PNG; nil if the provider has no icon.
    public func icon(of provider: FoundProvider) async throws -> Data? {
        provider.icon == nil ? nil : try await engine.icon(of: provider.application)
    }

    /// Requests that an app comes to the front of the screen. The app decides whether it does so. The request is sent only if the
    /// app is connected.
    ///
    /// - Throws: ``ServiceError``, with ``ServiceError/Code/providerSuspended`` if the app is not connected, and with
    ///   ``ServiceError/Code/deadlineExceeded`` after ten seconds; and `CancellationError`.
    public func bringToFront(_ address: ServiceApplication) async throws {
        _ = try await call(.frontRequest, of: address, deadline: .seconds(10), foreground: .preferPeer)
    }

    /// Sends a request, and waits for its result.
    ///
    /// When the task is cancelled, the request is withdrawn, or its provider is notified of the cancellation. When the process
    /// ends, the next run has the result in ``replies``.
    ///
    /// The deadline limits the whole call: the registration of the device, the search for the provider, the transfer of the
    /// files, the server's response and the result. At the deadline the call throws ``ServiceError/Code/deadlineExceeded``, or
    /// ``ServiceError/Code/storageUnavailable`` if it waits for the storage of this device. Its files are removed from the
    /// server, and the request is withdrawn as after a cancellation.
    /// - Parameters:
    ///   - method: The method that is called.
    ///   - address: An installation of an app, or an app without a device: the connected installation, or the one that was last
    ///     seen.
    ///   - parameters: The parameters of the request, up to 1 MiB.
    ///   - attachments: Paths of up to 32 files. The name at the receiver is a relative path, without components `.`, or the last
    ///     component of an absolute path.
    ///   - deadline: The time limit of the call, from now on: one second to seven days. The provider has the rest when the
    ///     request is sent, in whole seconds, rounded up.
    ///   - foreground: Reported to the provider; the library does nothing else with it.
    ///   - id: An id from ``makeRequestID()``, with which the app can cancel the request and observe its progress before it is
    ///     sent; nil for a new id.
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

    /// Does the same with parameters and a result of the app's own types. The files of the reply are not returned.
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

    /// Sends a request, and returns when the server has the request. The result is reported by ``events``, a delegate, and
    /// ``replies``.
    ///
    /// If the server does not have the request at the deadline, this throws ``ServiceError/Code/deadlineExceeded``, and removes
    /// the request and its files as `call` does. After the server has the request, the provider can reply until the deadline, and
    /// the result waits for this device on the server for up to a week.
    /// - Returns: The id of the request.
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

    /// Makes the id of a future request, for the parameter `id` of ``call(_:of:_:attachments:deadline:foreground:id:)`` and
    /// ``send(_:to:_:attachments:deadline:foreground:id:)``. With the id the app can cancel the request, and observe its
    /// progress, from now on.
    ///
    /// An id is for one request. The newest 1,000 unused ids can be cancelled.
    public func makeRequestID() -> String { engine.requestIDs.make() }

    /// The progress of the files of a request and of its reply, up to ten times per second. The iteration ends with the request,
    /// and at once for the id of no request. For a request without files the stream has no value before its end. Only the newest
    /// progress waits for a slow iteration: it replaces the progress before.
    ///
    /// - Parameter id: The id of a request that has not ended, or an id from ``makeRequestID()``.
    public func progress(of id: String) -> AsyncStream<ServiceProgress> { engine.watchConsumerProgress(of: id) }

    /// The results for which no ``call(_:of:_:attachments:deadline:foreground:id:)`` waits: those of an earlier run, and of
    /// ``send(_:to:_:attachments:deadline:foreground:id:)``. One iteration can run at a time.
    ///
    /// Each result is delivered again in the next run until it is confirmed: by ``LateReply/confirm()``, or by a
    /// ``ServiceClientDelegate`` that returned from `didReceiveFrom`. Without a confirmation a result is kept for seven days. Up
    /// to 1,000 results are kept, and 64 MiB with their files. Beyond that the oldest are removed with their files, and each is
    /// reported as ``ServiceClientEvent/resultRemoved(from:id:reason:)``. The newest result is always kept.
    ///
    /// A result for which the process ended ten times, before the iteration requested the next one, is removed in the same way at
    /// the next start. The end of the client, and the end of an iteration by `break`, an error or cancellation, do not count.
    public var replies: AsyncStream<LateReply> { engine.replies() }

    /// Cancels a request, at any time after ``makeRequestID()``.
    ///
    /// If the request is still being sent, it ends at once: its `call` or `send` throws ``ServiceError/Code/cancelled``, its
    /// upload stops, and the uploaded files are removed from the server. If the server has received the request meanwhile, the
    /// client cancels it there.
    ///
    /// - Returns: True if the request has no result. False if it was delivered before: its provider is notified of the
    ///   cancellation, and its result is still delivered.
    /// - Throws: ``ServiceError`` with ``ServiceError/Code/requestUnknown`` for an id of no request, and for a request that has
    ///   its result; with ``ServiceError/Code/deadlineExceeded`` if the server cannot be reached for 30 seconds; and
    ///   `CancellationError`.
    public func cancel(_ id: String) async throws -> Bool { try await engine.cancel(id) }

    /// Cancels all requests to an installation of an app. Returns the number of requests that were not delivered.
    public func cancelAll(to application: ServiceApplication) async throws -> Int {
        try await engine.cancelAll(to: application)
    }

    /// Waits until the server was notified of all cancellations, or for a time. The next run notifies the server of the remaining
    /// ones.
    package func waitForRemovals(atMost limit: Duration) async { await engine.waitForRemovals(atMost: limit) }

    /// Sets definitions of services. From now on requests and replies are checked against them; invalid ones fail with
    /// ``ServiceError/Code/serviceParametersInvalid``.
    public func use(_ definitions: ServiceDefinition...) async {
        for definition in definitions { await engine.router.define(definition) }
    }

    // MARK: Events

    /// The events of this device's requests, from now on.
    ///
    /// For a slow iteration up to 100 events wait, and in addition the newest progress of up to 100 transfers:
    /// ``ServiceClientEvent/sending(id:bytesSent:of:)`` and ``ServiceClientEvent/receiving(id:bytesReceived:of:)`` replace the
    /// progress before. Beyond that a new progress drops the oldest progress, and another event drops the oldest start of a file.
    /// A result, an arrival or a changed identity is dropped, the oldest first, only if 100 of them wait, or if the values, texts
    /// and paths of the waiting events have more than 16 MiB. The newest event is always kept. After a drop the next
    /// event is ``ServiceClientEvent/missed(_:)``. Results of ``send(_:to:_:attachments:deadline:foreground:id:)`` can be read
    /// from ``replies``; those of ``call(_:of:_:attachments:deadline:foreground:id:)`` are returned to its caller.
    ///
    /// When the device gets another user or signs out, the waiting events are dropped, and are not counted as missed.
    public var events: AsyncStream<ServiceClientEvent> { engine.clientListeners.subscribe() }

    /// Adds a delegate, which receives the same events except progress. The delegate is referenced weakly. Up to 1,000 events and
    /// 16 MiB of their content wait for delegates that do not return. Beyond that the oldest start of a file is dropped, then the
    /// oldest other event, and `didMissEvents` is called. A result that waits for a confirmation (``replies``) is not dropped.
    public func addDelegate(_ delegate: any ServiceClientDelegate) { engine.clientListeners.add(delegate, to: self) }

    /// Removes a delegate.
    public func removeDelegate(_ delegate: any ServiceClientDelegate) { engine.clientListeners.remove(delegate, from: self) }

    // MARK: Identities

    /// Sets the closure that verifies the identity of another installation: it receives the fingerprint, and whether the identity
    /// is the first or a changed one. Without a verifier the first identity is accepted, and a changed one is not.
    public func setIdentityVerifier(
        _ verify: (@Sendable (_ application: ServiceApplication, _ fingerprint: String, _ isFirst: Bool) async -> Bool)?
    ) async {
        await engine.setVerifier(verify)
    }

    /// Accepts the newest other identity that an installation presented. Returns false if it has presented only the accepted one.
    public func accept(_ application: ServiceApplication) async throws -> Bool {
        guard let device = application.device else { return false }
        return try await engine.accept(device)
    }
}
