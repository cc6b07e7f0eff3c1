import CarillonBasics
import CarillonWire
import Logging

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Requests that nobody wants any more.
extension ServiceEngine {
    /// Answers whether the request was gone before it was delivered.
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
            // The server never had it.
        }
        await forgetCall(id)
        files.removeAttachments(call.files)
        clientProgress.ended(id)
        outgoing.cancelled(id)
        return true
    }

    /// Nobody waits for a request any more: the server is notified, its files are removed, and the result that comes all the same is nobody's.
    func takeBack(_ id: String) {
        outgoing.pending[id] = nil
        guard let call = ownMemory.calls[id] else { return }
        takeBack(call)
    }

    func takeBack(_ call: StoredCall) {
        clientProgress.ended(call.id)
        ownMemory.calls[call.id] = nil
        outgoing.cancelTimer(of: call.id)
        guard outgoing.takingBack[call.id] == nil else { return }
        let work = outgoing.underWay[call.id]?.work
        // Ends with the server's answers, after ten minutes for each, or with the engine, though the task is cancelled that asked. It does not
        // keep the engine.
        outgoing.takingBack[call.id] = Task { [weak self, server, box] in
            // The next run goes on until the server has answered.
            await self?.storage.change("take back request") { try await box.takeBack(call.id) }
            // The server hears of the request before it hears that nobody wants it.
            await work?.value
            if let isLocal = await self?.cancelLocally(call) {
                let request = isLocal ? [] : ["\(ServiceAPI.path)/requests/\(call.id)"]
                var isDone = true
                for path in request + call.files.map({ "/v1/attachments/\($0)" }) where isDone {
                    isDone = await ServerRemovals.isRemoved(path, at: server)
                }
                if isDone { await self?.forgetCall(call.id) }
            }
            await self?.tookBack(call.id)
        }
    }

    private func tookBack(_ id: String) { outgoing.takingBack[id] = nil }

    /// Goes on with what an earlier run took back.
    func takeBackAgain() async {
        // Cancelled: the next run goes on.
        guard let calls = try? await storage.storing({ try await box.takenBack() }) else { return }
        for call in calls { takeBack(call) }
    }

    func cancelAll(to application: ServiceApplication) async throws -> Int {
        let device = application.device ?? ""
        guard AppID(application.app) != nil, DeviceID(device) != nil else {
            throw ServiceError(.applicationNotFound, "All requests are cancelled to one install of an app.")
        }
        let peer = ServicePeer(app: application.app, device: device)
        let early = cancelUnderWay(to: peer)
        for call in ownMemory.calls.values where call.peer == peer {
            _ = await cancelLocally(call)
        }
        let answer = try await server.persist(
            until: .now + 30, .delete, "\(ServiceAPI.path)/requests?app=\(application.app)&device=\(device)")
        guard case .array(let ids)? = answer["cancelled"] else { return early }
        for case .string(let id) in ids {
            if let call = try await call(id) { files.removeAttachments(call.files) }
            await forgetCall(id)
            clientProgress.ended(id)
            outgoing.cancelled(id)
        }
        return ids.count + early
    }
}
