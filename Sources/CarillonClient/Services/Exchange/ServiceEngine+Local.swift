import CarillonBasics
import CarillonWire
import Logging
import NIOCore

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Requests between apps of one machine, which do not need the server. The requests and their ids are the same as with the
/// server. If a message cannot be sent locally, it is sent through the server, and a recipient ignores a message that arrives
/// twice.
///
/// The server decides which apps may call each other. A provider accepts a local request only if the server delivered a request
/// from that device, or listed it as a provider, within the last day.
extension ServiceEngine {
    // MARK: Listening

    func runLocal() async {
        guard let local else { return }
        var schedule = ClientReconnectSchedule(server.api.backOff)
        var isFailing = false
        while !Task.isCancelled {
            guard let device = ownPeer?.device else {
                await localChanges.wait()
                continue
            }
            do {
                let listener = try await local.listen(as: device) { [weak self] in await self?.handleLocal($0) ?? false }
                isFailing = false
                schedule.succeeded()
                while ownPeer?.device == device, !Task.isCancelled { await localChanges.wait() }
                try? await listener.close()
                local.remove(device)
            } catch {
                if !isFailing {
                    logger.warning(
                        "cannot listen for apps of this machine; retrying", metadata: ["reason": "\(error)"])
                }
                isFailing = true
                // Cancelled: the loop ends.
                try? await health.wait(atMost: schedule.storageFailed())
            }
        }
    }

    /// Returns whether the event is stored.
    private func handleLocal(_ body: [UInt8]) async -> Bool {
        guard let event = ServiceEvent(body) else { return false }
        do {
            guard try await box.addLocal(event, body, at: Self.now) else { return false }
        } catch {
            logger.error("cannot store request of another app of this machine", metadata: ["reason": "\(error)"])
            return false
        }
        runner.wakeServices()
        return true
    }

    // MARK: Asking

    /// Returns whether the provider has stored a request. If so, this device applies the request's deadline.
    func sendLocally(_ body: [UInt8], _ call: StoredCall) async -> Bool {
        guard let local, local.hasSocket(call.device), let own = ownPeer, let json = JSONValue(parsing: body),
            let header = try? RequestHeader(json), let content = try? SealedContent(json)
        else { return false }
        let until = Self.now + call.deadlineSeconds * 1000
        let event = ServiceEvent.request(header, from: own, expiresAt: until, content)
        guard await local.send(event.body, to: call.device) else { return false }
        // If this change is not stored, the next run also sends the request through the server, as the same request.
        await storage.change("note request as sent") { [box] in try await box.sentLocally(call.id, until: until) }
        // The result may have arrived already.
        guard ownCache.calls[call.id] != nil else { return true }
        ownCache.calls[call.id]?.localUntil = until
        startDeadline(of: call.id, until: until)
        return true
    }

    /// Ends a request at its deadline. The server applies the deadlines of its own requests; the consumer applies the deadlines
    /// of local requests.
    func startDeadline(of id: String, until: Int64) {
        // The task ends at the deadline, with the request or with the run.
        let timer = Task { [weak self] in
            try await Task.sleep(for: .milliseconds(max(0, until - Self.now)))
            await self?.localTimeEnded(id)
        }
        outgoing.setTimer(of: id, timer)
    }

    private func localTimeEnded(_ id: String) async {
        // The end of the request cancels its timer, which is this task.
        outgoing.timerEnded(id)
        do {
            // The reply arrived in time, although the transfer of its files may take longer.
            if try await storage.storing({ try await box.hasReply(to: id) }) { return }
        } catch {
            return logger.error("a deadline waits for the next run", metadata: ["reason": "\(error)"])
        }
        await finish(id, .failure(ServiceError(.deadlineExceeded, "The request's time is over.")), nil)
    }

    func startDeadlines() async {
        await storage.change("read deadlines") { [weak self, box] in
            var calls: [(id: String, until: Int64)] = []
            for call in try await box.localCalls() where try await !box.hasReply(to: call.id) { calls.append(call) }
            await self?.startDeadlines(of: calls)
        }
    }

    private func startDeadlines(of calls: [(id: String, until: Int64)]) {
        for (id, until) in calls where !outgoing.hasTimer(id) { startDeadline(of: id, until: until) }
    }

    /// Notifies the provider of the cancellation of a local request. Returns false for a request that was sent through the
    /// server.
    func cancelLocally(_ call: StoredCall) async -> Bool {
        guard call.localUntil != nil, let local, let id = ServiceRequestID(call.id) else { return false }
        _ = await local.send(ServiceEvent.cancelled(id).body, to: call.device)
        return true
    }

    // MARK: Answering

    /// Delivers the result of a local request to its consumer: locally, or through the server if the consumer also sent the
    /// request there.
    func replyLocally(_ reply: [UInt8], to id: ServiceRequestID, _ from: ServicePeer, until deadline: Date) async throws {
        guard let local, let own = ownPeer, let json = JSONValue(parsing: reply) else {
            throw ServiceError(.serverUnavailable, "The request came from this machine, whose socket is not used any more.")
        }
        let event = ServiceEvent.reply(id, from: own, try SealedContent(json))
        var schedule = ClientReconnectSchedule(server.api.backOff)
        while true {
            try Task.checkCancellation()
            if await local.send(event.body, to: from.device) { return }
            let hint: Duration?
            switch await server.send(.post, "\(ServiceAPI.path)/requests/\(id)/reply", reply) {
            case .done: return
            case .refused(let error) where error.code != .requestUnknown: throw error
            case .refused: hint = nil
            case .later(let wait): hint = wait
            }
            guard Date.now < deadline else { throw ServiceError(.deadlineExceeded, "The consumer could not be reached.") }
            try await server.api.wait(&schedule, hint: hint, until: deadline)
        }
    }
}
