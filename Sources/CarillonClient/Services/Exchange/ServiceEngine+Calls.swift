import CarillonBasics
import CarillonWire
import Logging

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The sending of the app's requests to the server.
extension ServiceEngine {
    /// Sends a request without a time limit of its own: ``send(_:result:)`` ends it.
    func sendWhole(_ call: ServiceCall, _ result: PendingResult<ServiceReply>?) async throws {
        activity.began()
        defer { activity.ended() }
        let names = try Self.check(call)
        try await router.definition(of: call.method)?.check(
            call.parameters, attachments: names.count, of: call.method.name)
        try await ready(for: call)
        let (peer, keys) = try await storing(of: call) { try await provider(of: call) }
        outgoing.underWay[call.id]?.peer = peer
        do {
            try await send(call, names, to: peer, keys, result)
        } catch let error as ServiceError where Self.notFoundCodes.contains(error.code) {
            // Another device may provide the service since the lookup.
            providerCache.remove(peer)
            let (newPeer, newKeys) = try await storing(of: call) { try await provider(of: call) }
            guard newPeer != peer else { throw error }
            outgoing.underWay[call.id]?.peer = newPeer
            try await send(call, names, to: newPeer, newKeys, result)
        }
    }

    private static let notFoundCodes: Set<ServiceError.Code> = [
        .applicationNotFound, .serviceNotFound, .serviceVersionNotFound,
    ]

    private func send(
        _ call: ServiceCall, _ names: [(path: String, name: RelativePath)], to peer: ServicePeer, _ keys: KeyBundle,
        _ result: PendingResult<ServiceReply>?
    ) async throws {
        if call.method == .frontRequest {
            try await sendFrontRequest(call, peer, keys)
            result?.resume(.success(ServiceReply()))
            return
        }
        let lifetime = Duration.seconds(max(60, call.deadlineSeconds + 3600))
        var uploaded = try await files.upload(
            names, for: peer, lifetime: lifetime, until: { waitForStorage(of: call) },
            measuring: { consumerMeter(.sending, of: call.id, $0) }
        ) { path in
            clientListeners.notify([.didStartSending(to: ServiceApplication(peer), filename: path, id: call.id)])
        }
        do {
            let whole = SealedPayload(.value(call.parameters), files: uploaded.files)
            let payload = try await files.shortened(
                whole, call.id, for: peer, lifetime: lifetime, uploaded: &uploaded, until: { waitForStorage(of: call) })
            try Task.checkCancellation()
            if let result { outgoing.pending[call.id] = result }
            let uploads = uploaded.ids
            try await withKeys(of: call, peer, keys) { keys in
                // The provider has the remaining time.
                var timed = call
                timed.deadlineSeconds = call.remainingSeconds
                let request = timed
                let (body, stored) = try await storing(of: call) {
                    try await seal(request, payload, whole, to: peer, keys)
                }
                try Task.checkCancellation()
                ownCache.calls[call.id] = stored
                let keptUntil = Self.now + (call.deadlineSeconds + ServiceBox.resultSeconds) * 1000
                try await storing(of: call) {
                    try await box.save(stored, body: body, claiming: uploads, keptUntil: keptUntil)
                }
                if await sendLocally(body, stored) { return }
                try await post(body, call.id, until: call.endDate)
            }
            try Task.checkCancellation()
            await files.confirm(uploaded)
        } catch {
            outgoing.pending[call.id] = nil
            if Self.mayHaveArrived(error), let stored = ownCache.calls[call.id] {
                withdraw(stored)
            } else {
                await deleteCall(call.id)
            }
            files.cancelUploads(uploaded)
            throw error
        }
    }

    /// Seals and posts a request. If the device has another key by now, the request is sealed and posted once more.
    private func withKeys(
        of call: ServiceCall, _ peer: ServicePeer, _ keys: KeyBundle, _ post: (KeyBundle) async throws -> Void
    ) async throws {
        do {
            try await post(keys)
        } catch let error as ServiceError where error.code == .providerKeyChanged {
            var again = call
            again.to.device = peer.device
            providerCache.remove(peer)
            let another = again
            let (_, newKeys) = try await storing(of: call) { try await provider(of: another, anew: true) }
            guard newKeys.id != keys.id else { throw error }
            try await post(newKeys)
        }
    }

    /// Sends a front request, which is not stored: it is sent now or not at all.
    private func sendFrontRequest(_ call: ServiceCall, _ peer: ServicePeer, _ keys: KeyBundle) async throws {
        let payload = SealedPayload(.value(call.parameters), files: [])
        try await withKeys(of: call, peer, keys) { keys in
            let (body, _) = try await storing(of: call) { try await seal(call, payload, payload, to: peer, keys) }
            _ = try await server.persist(until: call.endDate, .post, ServiceAPI.path + "/requests", body)
        }
    }

    private static func check(_ call: ServiceCall) throws -> [(path: String, name: RelativePath)] {
        try call.method.check()
        guard AppID(call.to.app) != nil, call.to.device.map({ DeviceID($0) != nil }) ?? true else {
            throw ServiceError(.applicationNotFound, "\(call.to.app) is not the name of an app and its install.")
        }
        guard call.parameters.isValid else {
            throw ServiceError(.serviceParametersInvalid, "A value of a service is simple, or an array or object of such.")
        }
        guard (1...RequestHeader.longestDeadlineSeconds).contains(call.deadlineSeconds) else {
            throw ServiceError(.deadlineExceeded, "A deadline is one second to seven days.")
        }
        return try names(of: call.attachments, as: call.names)
    }

    /// Returns the names under which files are sent: the given names, otherwise a relative path unchanged, or the last part of
    /// another path. Equal names get numbers.
    static func names(of paths: [String], as given: [String?] = []) throws -> [(path: String, name: RelativePath)] {
        guard paths.count <= SealedContent.mostFiles else {
            throw ServiceError(.requestTooLarge, "There are up to \(SealedContent.mostFiles) files.")
        }
        var bytes: Int64 = 0
        let names = try paths.enumerated().map { number, path in
            let text = RelativePath.nameText(of: path, named: number < given.count ? given[number] : nil)
            guard let name = RelativePath(text) else {
                throw ServiceError(.pathInvalid, "\(text) is not a name that every system can give to a file.")
            }
            guard let file = try? DiskFile(path, .reading), let size = try? file.size() else {
                throw ServiceError(.attachmentMissing, "\(path) is no file.")
            }
            bytes += size
            return (path, name)
        }
        guard bytes <= SealedContent.mostFileBytes else {
            throw ServiceError(.requestTooLarge, "The files have up to \(SealedContent.mostFileBytes) bytes in all.")
        }
        guard let distinct = RelativePath.distinct(names.map(\.1)) else {
            throw ServiceError(.pathInvalid, "The name of a file is the directory of another file; rename one of them.")
        }
        return zip(names, distinct).map { (path: $0.0, name: $1) }
    }

    /// Returns the body of a request, and the state that is stored for its reply.
    private func seal(
        _ call: ServiceCall, _ payload: SealedPayload, _ whole: SealedPayload, to peer: ServicePeer, _ keys: KeyBundle
    ) async throws -> (body: [UInt8], stored: StoredCall) {
        guard let own = ownPeer else { throw ServiceError(.callForbidden, "The device is not registered yet.") }
        let (ownKeys, bundle) = try await keysForOthers()
        let context = SealContext(
            direction: .request, id: call.id, consumer: own, provider: peer, senderKey: ownKeys.key.name,
            receiverKey: keys.id, method: call.method, deadlineSeconds: call.deadlineSeconds,
            foreground: call.foreground.rawValue, files: whole.files.count, fileBytes: whole.fileBytes)
        let sealed = try ServiceSeal.seal(payload.bytes, to: keys.key, from: ownKeys.key.key, context)
        let content = SealedContent(
            keyID: keys.id, sender: bundle, encapsulated: sealed.encapsulated, body: sealed.body,
            files: whole.files.count, fileBytes: whole.fileBytes)
        let header: [JSONValue.Member] = [
            .init(name: "id", value: .string(call.id)), .init(name: "service", value: .string(call.method.service)),
            .init(name: "version", value: .string(call.method.version)),
            .init(name: "method", value: .string(call.method.name)),
            .init(name: "deadline", value: .integer(Int(call.deadlineSeconds))),
            .init(name: "foreground", value: .string(call.foreground.rawValue)),
            .init(name: "app", value: .string(peer.app)), .init(name: "device", value: .string(peer.device)),
        ]
        let body = JSONValue.object(header + content.members).bytes
        let stored = StoredCall(
            id: call.id, app: peer.app, device: peer.device, service: call.method.service, version: call.method.version,
            method: call.method.name, deadlineSeconds: call.deadlineSeconds, foreground: call.foreground.rawValue,
            key: ownKeys.key.name, hash: Data(sealed.hash),
            attachments: call.attachments.map { box.store.paths.kept($0) },
            parameters: String(decoding: call.parameters.json.bytes, as: UTF8.self),
            files: whole.files.map(\.manifest.id) + payload.attachedIDs,
            until: Int64(call.endDate.timeIntervalSince1970 * 1000), user: ownCache.namedUsers[peer.device])
        return (body, stored)
    }

    private func post(_ body: [UInt8], _ id: String, until moment: Date) async throws {
        _ = try await server.persist(until: moment, .post, ServiceAPI.path + "/requests", body)
        // The server has the request. If it is sent again, the server treats it as the same request.
        await storage.change("note request as sent") { [box] in try await box.sent(id) }
    }

    /// Sends the requests that an earlier run stored, and that the server may not have.
    func sendUnsent() async {
        // Cancelled: the next run sends them.
        guard let unsent = try? await storage.storing({ try await box.unsent(at: Self.now) }) else { return }
        await withDiscardingTaskGroup { group in
            for (id, body) in unsent where outgoing.pending[id] == nil && outgoing.underWay[id] == nil {
                group.addTask { await self.sendAgain(id, body) }
            }
        }
    }

    private func sendAgain(_ id: String, _ body: [UInt8]) async {
        do {
            guard let call = try await storage.storing({ try await self.call(id) }) else { return }
            let end = call.endDate ?? Date.now + TimeInterval(call.deadlineSeconds)
            do {
                try await post(body, id, until: end)
            } catch let error as ServiceError where error.code == .deadlineExceeded {
                // The server may have the request, and its answer was lost.
                guard try await hasResult(id, until: end + TimeInterval(ServiceBox.resultSeconds)) else { throw error }
                await storage.change("note request as sent") { [box] in try await box.sent(id) }
            }
        } catch let error as ServiceError {
            await finish(id, .failure(error), nil)
        } catch {
            // The next run sends it.
            logger.info("a request waits for the next run", metadata: ["reason": "\(type(of: error))"])
        }
    }

    /// Cancels a request whose deadline is over.
    ///
    /// - Returns: Whether the server delivered the request or has its result, so that an event ends it.
    private func hasResult(_ id: String, until moment: Date) async throws -> Bool {
        do {
            _ = try await server.persist(until: moment, .delete, "\(ServiceAPI.path)/requests/\(id)")
            return false
        } catch let error as ServiceError {
            return error.code == .alreadyDelivered || error.code == .requestFinished
        }
    }
}
