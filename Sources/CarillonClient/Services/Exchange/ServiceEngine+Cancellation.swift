import CarillonBasics
import CarillonWire
import Logging

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The cancellation of requests.
extension ServiceEngine {
    /// Returns whether the request was cancelled before its delivery.
    func cancel(_ id: String) async throws -> Bool {
        if cancelUnderWay(id) { return true }
        guard let call = try await call(id) else {
            throw ServiceError(.requestUnknown, "This device did not ask that, or has the result.")
        }
        if await cancelLocally(call) { return false }
        do {
            _ = try await server.persist(until: .now + 30, .delete, "\(ServiceAPI.path)/requests/\(id)")
        } catch let error as ServiceError where error.code == .alreadyDelivered || error.code == .requestFinished {
            return false
        } catch let error as ServiceError where error.code == .requestUnknown {
            // The server never received the request.
        }
        await deleteCall(id)
        files.removeAttachments(call.files)
        clientProgress.ended(id)
        outgoing.cancelled(id)
        return true
    }

    /// Takes a request back: no task waits for its result any more. The server is notified, the files of the request are removed,
    /// and a later result is dropped.
    func withdraw(_ id: String) {
        outgoing.pending[id] = nil
        guard let call = ownCache.calls[id] else { return }
        withdraw(call)
    }

    func withdraw(_ call: StoredCall) {
        clientProgress.ended(call.id)
        ownCache.calls[call.id] = nil
        outgoing.cancelTimer(of: call.id)
        guard outgoing.withdrawals[call.id] == nil else { return }
        let work = outgoing.underWay[call.id]?.work
        // The task ends with the server's answers, after ten minutes for each, or with the engine, even if the caller's task is
        // cancelled. The task does not retain the engine.
        outgoing.withdrawals[call.id] = Task { [weak self, server, box] in
            // The next run continues until the server has answered.
            await self?.storage.change("take back request") { try await box.markWithdrawn(call.id) }
            // The server receives the request before its cancellation.
            await work?.value
            if let isLocal = await self?.cancelLocally(call) {
                let request = isLocal ? [] : ["\(ServiceAPI.path)/requests/\(call.id)"]
                var isDone = true
                for path in request + call.files.map({ "/v1/attachments/\($0)" }) where isDone {
                    isDone = await ServerRemovals.isRemoved(path, at: server)
                }
                if isDone { await self?.deleteCall(call.id) }
            }
            await self?.withdrawn(call.id)
        }
    }

    private func withdrawn(_ id: String) { outgoing.withdrawals[id] = nil }

    /// Continues the cancellations of an earlier run.
    func resumeWithdrawals() async {
        // If the task is cancelled, the next run continues.
        guard let calls = try? await storage.storing({ try await box.withdrawnCalls() }) else { return }
        for call in calls { withdraw(call) }
    }

    func cancelAll(to application: ServiceApplication) async throws -> Int {
        let device = application.device ?? ""
        guard AppID(application.app) != nil, DeviceID(device) != nil else {
            throw ServiceError(.applicationNotFound, "All requests are cancelled to one install of an app.")
        }
        let peer = ServicePeer(app: application.app, device: device)
        let early = cancelUnderWay(to: peer)
        for call in ownCache.calls.values where call.peer == peer {
            _ = await cancelLocally(call)
        }
        let answer = try await server.persist(
            until: .now + 30, .delete, "\(ServiceAPI.path)/requests?app=\(application.app)&device=\(device)")
        guard case .array(let ids)? = answer["cancelled"] else { return early }
        for case .string(let id) in ids {
            if let call = try await call(id) { files.removeAttachments(call.files) }
            await deleteCall(id)
            clientProgress.ended(id)
            outgoing.cancelled(id)
        }
        return ids.count + early
    }
}
