import CarillonCore
import CarillonWire

/// Apps, keys and documents of apps.
extension WorkloadLane {
    /// An app beside that of the lane.
    func extraApp(_ choice: Int) throws -> AppID {
        guard let id = AppID("\(app.id.text).extra\(choice)") else { throw Missing() }
        return id
    }

    func changeApp(_ operation: WorkloadOperation) async throws -> String {
        let id = try extraApp(operation.choice)
        if operation.slot == 0 { return text(try await store.deleteApp(id, at: now)) }
        return text(try await store.createApp(id, at: now))
    }

    func liveKeys() async throws -> [AccessKey] {
        try await store.keys().filter { $0.app == app.id && $0.revokedAt == nil }.sorted { $0.id.value < $1.id.value }
    }

    func changeKey(_ operation: WorkloadOperation) async throws -> String {
        let keys = try await liveKeys()
        let hash = SecretHash(of: operation.bytes)
        guard keys.count > operation.slot else {
            let key = AccessKey(
                id: KeyID(operation.id.low), role: .client, app: app.id, name: "key", secretHash: hash, createdAt: now)
            return text(try await store.insertKey(key))
        }
        let key = keys[0].id
        if operation.choice == 0 { return text(try await store.revokeKey(key, at: now)) }
        let isRotated = try await store.rotateKey(
            key, to: hash, earlierValidUntil: now.adding(seconds: 600), servedUntil: 600)
        return text(isRotated)
    }

    func putDocument(_ operation: WorkloadOperation) async throws -> String {
        let (document, isGone) = ("{\"value\":\(operation.value)}", operation.choice == 0)
        switch operation.value % 7 {
        case 0:
            return text(try await store.putItemRules(document, of: app.serial, at: now))
        case 1:
            return text(try await store.putParameterRules(document, of: app.serial, at: now))
        case 2:
            return text(try await store.putAlert(isGone ? nil : document, of: app.id))
        case 3:
            if isGone { return text(try await store.removeUserRules(of: app.serial)) }
            let rules = StoredUserRules(app: app.serial, sealed: operation.bytes, setAt: now)
            return text(try await store.putUserRules(rules))
        case 4:
            if isGone { return text(try await store.removeVeto(of: app.serial)) }
            let veto = StoredVeto(
                app: app.serial, address: "https://example.com/ask", sealed: operation.bytes, setAt: now)
            return text(try await store.putVeto(veto))
        case 5:
            if isGone { return text(try await store.removeCredential(of: app.id, for: .production)) }
            let credential = GatewayCredential(
                app: app.id, lane: pushLane, sealed: operation.bytes, summary: "key", setAt: now)
            return text(try await store.putCredential(credential))
        default:
            return text(try await store.setRealm(isGone ? nil : "realm\(number)", of: app.serial))
        }
    }

    /// What belongs to no lane. Nothing that a lane reads depends on it.
    func maintain(_ operation: WorkloadOperation) async throws -> String {
        switch operation.choice {
        case 0: _ = try await store.continueDeletions(at: now, limit: 20)
        case 1: try await store.noteServed(Int64(operation.value))
        default: _ = try await store.takeUnwatched(limit: 4)
        }
        return "maintained"
    }
}
