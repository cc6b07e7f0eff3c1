import CarillonBasics
package import CarillonWire
import Metrics

/// Requests from device to device: the permission to call, the delivery of a request to its provider, and its one result for its
/// consumer.
///
/// The inboxes of both devices carry the events of a request. Each step is written in one transaction with the envelope that
/// reports it. A step has an effect only if the request's state allows it, so that the first result is the only one.
package struct Services: Sendable {
    let store: any ServiceStore
    let documents: AppDocuments
    let home: any LocalHome
    let others: OtherHomes
    private let rateLimits: RateLimits
    let time: TimeSource

    let made = ServerMetric.serviceRequests.counter("made")
    private let repeated = ServerMetric.serviceRequests.counter("repeated")
    private let replied = ServerMetric.serviceRequests.counter("replied")
    private let cancelled = ServerMetric.serviceRequests.counter("cancelled")
    private let failed = ServerMetric.serviceRequests.counter("failed")
    let refused = ServerMetric.serviceRequests.counter("refused")
    private let quotaFull = ServerMetric.serviceRequests.counter("share_full")

    package init(
        store: any ServiceStore, documents: AppDocuments, home: any LocalHome, others: OtherHomes, rateLimits: RateLimits,
        time: TimeSource
    ) {
        self.store = store
        self.documents = documents
        self.home = home
        self.others = others
        self.rateLimits = rateLimits
        self.time = time
    }

    // MARK: Asking

    /// A request from one device to another.
    package struct Call: Sendable {
        package var header: RequestHeader
        package var app: AppID
        package var device: DeviceID
        package var content: SealedContent
        /// The fingerprint of the whole call.
        package var fingerprint: [UInt8]

        package init(
            header: RequestHeader, app: AppID, device: DeviceID, content: SealedContent, fingerprint: [UInt8]
        ) {
            self.header = header
            self.app = app
            self.device = device
            self.content = content
            self.fingerprint = fingerprint
        }
    }

    /// Accepts a request, and appends it to the inbox of its provider. A repetition is the same request.
    ///
    /// - Returns: The time until which the provider can answer.
    package func ask(_ call: Call, by consumer: Device) async throws -> Timestamp {
        try rateLimits.takeServiceRequest(by: consumer.serial)
        let reach: ServiceReach?
        switch try await store.requestBeginning(call.header.id, by: consumer.serial, to: call.device, of: call.app) {
        case .made(let earlier): return try same(earlier, call, consumer)
        case .new(let found): reach = found
        }
        guard let reach else {
            throw Self.nobodyMayBeCalled
        }
        let provider = try provider(of: call, in: reach)
        if call.header.isOfFrontService { return try await askToFront(call, provider, by: consumer) }
        let now = time.now()
        let expiresAt = now.adding(seconds: call.header.deadlineSeconds)
        var header = call.header
        // A backend device serves many users and needs the user. A user's device has only its own user.
        if provider.cluster != nil { header.user = reach.caller.user?.text }
        let event = ServiceEvent.request(header, from: consumer.peer, expiresAt: expiresAt.milliseconds, call.content)
        let users = RequestUsers(consumer: reach.caller, provider: provider.user)
        let request = NewRequest(
            id: call.header.id, consumer: consumer.serial, consumerApp: consumer.app, provider: provider.device,
            providerApp: provider.app, fingerprint: call.fingerprint, expiresAt: expiresAt)
        let delivered = await deliver(
            event, .request, to: provider.device, of: provider.app, until: expiresAt, shareOf: consumer.serial,
            .made(request, between: users))
        switch delivered {
        case .stored, .answered, .sent:
            made.increment()
            return expiresAt
        case .full:
            refused.increment()
            throw Refusal(.inboxFull, "The provider's inbox is full; retry later.", retryAfterSeconds: 60)
        case .quotaFull:
            quotaFull.increment()
            throw Refusal(
                .inboxFull,
                "The requests of this device fill \(InboxLimits.consumerPercent) % of the provider's inbox, the limit for one consumer; retry after the provider has received some.",
                retryAfterSeconds: 60)
        case .failed(let fault): throw fault
        default:
            if let earlier = try await store.serviceRequest(call.header.id) { return try same(earlier, call, consumer) }
            refused.increment()
            guard try await store.unfinishedRequestCount(of: consumer.serial) < ServiceRequest.mostOfConsumer else {
                throw Refusal(
                    .quotaExceeded,
                    "A device can have up to \(ServiceRequest.mostOfConsumer) unfinished requests; retry after one has a result.",
                    retryAfterSeconds: 10)
            }
            throw Self.applicationNotFound
        }
    }

    private func same(_ earlier: ServiceRequest, _ call: Call, _ consumer: Device) throws -> Timestamp {
        guard earlier.consumer == consumer.serial, earlier.fingerprint == call.fingerprint, !earlier.isAbandoned else {
            throw Refusal(.idempotencyKeyReused, "The \"id\" was used for another request; use a new one.")
        }
        repeated.increment()
        return earlier.expiresAt
    }

    /// Returns the provider of a call. A provider that the device may not call is reported as unknown.
    private func provider(of call: Call, in reach: ServiceReach) throws -> ServiceProvider {
        guard let provider = reach.providers.first else { throw Self.applicationNotFound }
        let (header, offers) = (call.header, provider.profile.offers)
        guard header.isOfFrontService || offers.contains(where: { $0.service == header.service }) else {
            throw Refusal(.serviceNotFound, "The provider does not offer \(header.service).")
        }
        guard header.isOfFrontService || offers.contains(ServiceOffer(header.service, header.version)) else {
            throw Refusal(
                .serviceVersionNotFound, "The provider does not offer version \(header.version) of \(header.service).")
        }
        guard provider.profile.keys.id == call.content.keyID else {
            throw Refusal(
                .providerKeyChanged,
                "The provider has a new key; find the provider again, and encrypt the request for that key.")
        }
        return provider
    }

    private static let applicationNotFound = Refusal(
        .applicationNotFound, "There is no such provider, or the device is not allowed to call it.")

    // MARK: Answering

    /// Notes that the provider has stored the whole request.
    package func received(_ id: ServiceRequestID, by provider: Device) async throws {
        let request = try await request(id, of: provider)
        guard request.state == .waiting else { return }
        try await notify(
            .received(id), .notice, to: request.consumer, of: request.consumerApp, .received(request.serial))
    }

    /// Accepts the provider's one result. A repetition with the same result has no effect.
    package func reply(_ content: SealedContent, hash: [UInt8], to id: ServiceRequestID, by provider: Device) async throws {
        let request = try await request(id, of: provider)
        guard request.state != .finished else { return try checkSame(request, hash) }
        let event = ServiceEvent.reply(id, from: provider.peer, content)
        let until = time.now().adding(seconds: ServiceRequest.resultSeconds)
        let step = RequestStep.finished(request.serial, replyHash: hash, at: time.now())
        let delivered = await deliver(
            event, .reply, to: request.consumer, of: request.consumerApp, until: until, .step(step))
        switch delivered {
        case .stored, .answered, .sent: replied.increment()
        case .full:
            throw Refusal(.inboxFull, "The consumer's inbox is full; retry later.", retryAfterSeconds: 10)
        case .failed(let fault): throw fault
        default: try checkSame(try await self.request(id, of: provider), hash)
        }
    }

    private func request(_ id: ServiceRequestID, of provider: Device) async throws -> ServiceRequest {
        guard let request = try await store.serviceRequest(id), request.provider == provider.serial else {
            throw Self.requestUnknown
        }
        return request
    }

    private func checkSame(_ request: ServiceRequest, _ hash: [UInt8]) throws {
        guard request.replyHash == hash else {
            throw Refusal(.requestFinished, "The request already has another result, or its deadline has passed.")
        }
    }

    private static let requestUnknown = Refusal(.requestUnknown, "There is no such request for this device.")

    // MARK: Cancelling

    /// Cancels a request for its consumer. A request that was not delivered is removed when this method returns. If it was
    /// delivered, its provider is notified, and its result is still delivered.
    ///
    /// - Throws: ``ErrorCode/alreadyDelivered`` if the request was delivered, and ``ErrorCode/requestFinished`` if it is
    ///   finished.
    package func cancel(_ id: ServiceRequestID, by consumer: Device) async throws {
        guard let request = try await store.serviceRequest(id), request.consumer == consumer.serial, !request.isAbandoned
        else { throw Self.requestUnknown }
        guard try await cancel(request) else {
            throw Refusal(
                .alreadyDelivered, "The request was already delivered; the provider is notified that it was cancelled.")
        }
    }

    /// Cancels all requests of a device to another one. Returns the requests that were removed before they were delivered.
    package func cancelAll(
        by consumer: Device, to device: DeviceID, of app: AppID
    ) async throws -> [ServiceRequestID] {
        let query = ServiceQuery(app: app, device: device)
        guard let provider = try await store.serviceProviders(for: consumer.serial, query, limit: 1)?.providers.first else {
            throw Self.applicationNotFound
        }
        let requests = try await store.unfinishedRequests(
            of: consumer.serial, to: provider.device, limit: ServiceRequest.mostOfConsumer)
        var cancelled: [ServiceRequestID] = []
        for (place, request) in requests.enumerated() {
            do {
                if try await cancel(request, isOneOfAll: true) { cancelled.append(request.id) }
            } catch let fault as StoreFault where fault.isOfHome && place > 0 {
                throw StoreFault(.outcomeUnknown, "only some requests were cancelled: \(fault.message)")
            }
        }
        return cancelled
    }

    private func cancel(_ request: ServiceRequest, isOneOfAll: Bool = false) async throws -> Bool {
        guard request.state != .finished else {
            if isOneOfAll { return false }
            throw Refusal(.requestFinished, "The request already has its result.")
        }
        switch try await withdraw(request) {
        case .cancelled:
            cancelled.increment()
            return true
        case .finished: return false
        case .delivered: break
        }
        guard !request.isUnwanted else { return false }
        try await notify(
            .cancelled(request.id), .notice, to: request.provider, of: request.providerApp, .unwanted(request.serial))
        return false
    }

    // MARK: Time

    /// Ends due requests, and removes finished requests after their retention time, up to `limit` of each. Returns whether
    /// nothing is left.
    ///
    /// - Parameter retention: Nil removes no finished requests.
    package func sweep(forgetting retention: RetentionTime?, limit: Int = 200) async throws -> Bool {
        let ended = try await endDue(limit: limit)
        guard let retention else { return ended < limit }
        let forgotten = try await store.forgetRequests(in: home.shards, by: retention, limit: limit)
        return ended < limit && forgotten < limit
    }

    /// Ends requests to devices of this home whose deadline has passed, or one of whose devices was deleted or has another user.
    /// Returns the number of requests that were found.
    ///
    /// If the home of a consumer does not answer, or the device of a request moves, the other requests are still ended.
    ///
    /// - Throws: The first fault.
    @discardableResult
    package func endDue(limit: Int = 200) async throws -> Int {
        let due = try await store.dueRequests(in: home.shards, at: time.now(), limit: limit)
        var fault: (any Error)?
        for request in due {
            do {
                try await end(request)
            } catch let late where !home.has(request.consumer) || (late as? StoreFault)?.isOfHome == true {
                fault = fault ?? late
            }
        }
        if let fault { throw fault }
        return due.count
    }

    private func end(_ request: ServiceRequest) async throws {
        let isUndelivered = try await home.takeBack(request.envelope, from: request.provider)
        if request.isAbandoned { return try await endAbandoned(request, isUndelivered: isUndelivered) }
        let step = RequestStep.finished(request.serial, replyHash: nil, at: time.now())
        let code = request.fault ?? .deadlineExceeded
        try await notify(
            .failed(request.id, code: code.rawValue), .notice, to: request.consumer, of: request.consumerApp, step,
            wakes: true)
        failed.increment()
    }

    /// Ends due requests after a change that is stored. A fault does not fail the change: the sweep tries again, and reports the
    /// fault if it persists. Other homes end their due requests a moment later. The sweep ends due requests of a shard that
    /// moves.
    package func endDueIfPossible() async {
        others.hint(DueRequestsWait())
        do { try await endDue() } catch {}
    }

    /// Ends a request whose consumer has another user. The provider is notified if it can have the request.
    private func endAbandoned(_ request: ServiceRequest, isUndelivered: Bool) async throws {
        let now = time.now()
        if isUndelivered || request.fault != nil || request.isUnwanted {
            _ = try await store.cancelRequest(request.serial, at: now)
        } else {
            let step = RequestStep.finished(request.serial, replyHash: nil, at: now)
            try await notify(.cancelled(request.id), .notice, to: request.provider, of: request.providerApp, step)
        }
        cancelled.increment()
    }

    // MARK: Inboxes

    /// Delivers an event. If it is refused as outdated, another call delivered it.
    private func notify(
        _ event: ServiceEvent, _ part: Envelope.ServicePart, to device: DeviceSerial, of app: AppSerial, _ step: RequestStep,
        wakes: Bool = false
    ) async throws {
        let until = time.now().adding(seconds: ServiceRequest.resultSeconds)
        let delivered = await deliver(event, part, to: device, of: app, until: until, wakes: wakes, .step(step))
        if case .failed(let fault) = delivered { throw fault }
    }

    private func deliver(
        _ event: ServiceEvent, _ part: Envelope.ServicePart, to device: DeviceSerial, of app: AppSerial, until: Timestamp,
        wakes: Bool = true, shareOf consumer: DeviceSerial? = nil, _ change: ServiceDelivery.Change
    ) async -> InboxResult {
        await deliver(
            ServiceDelivery(
                device: device, app: app, request: event.id, part: part, body: event.body, change: change,
                acceptedAt: time.now(), expiresAt: until, wakes: wakes, consumer: consumer))
    }
}

extension RequestStep {
    package var serial: RequestSerial {
        switch self {
        case .made(let request, _): request.serial
        case .received(let serial), .unwanted(let serial), .finished(let serial, _, _): serial
        }
    }
}
