import CarillonCore
import CarillonWire

/// Apps, keys and documents of apps.
extension WorkloadTrack {
    /// An app beside that of the track.
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

    /// The documents that operations store.
    var documents: [AppDocument.Key] {
        AppDocument.Kind.allCases.map { kind in
            let name = kind == .credential ? PushEnvironment.production.rawValue : ""
            return AppDocument.Key(kind, of: app.serial, name: name)
        }
    }

    func changeDocument(_ operation: WorkloadOperation) async throws -> String {
        let key = documents[Int(operation.value) % documents.count]
        if operation.choice == 0 { return text(try await store.removeDocument(key)) }
        // Apps of other tracks are in other realms.
        let document = key.kind == .realm ? "realm\(number)" : "{\"value\":\(operation.value)}"
        return text(try await store.putDocument(Array(document.utf8), as: key, at: now))
    }

    /// The data that belongs to no track. No read of a track depends on it.
    func maintain(_ operation: WorkloadOperation) async throws -> String {
        switch operation.choice {
        case 0: _ = try await store.continueDeletions(at: now, limit: 20)
        default: try await store.noteServed(Int64(operation.value))
        }
        return "maintained"
    }
}
