import CarillonBasics
import CarillonWire
import Logging

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension ServiceEngine {
    // MARK: Sending

    /// Sends a request, however long it takes: ``send(_:result:)`` ends it.
    func sendWhole(_ call: ServiceCall, _ result: PendingResult<ServiceReply>?) async throws {
        activity.began()
        defer { activity.ended() }
        let names = try Self.check(call)
        try await router.definition(of: call.method)?.check(
            call.parameters, attachments: names.count, of: call.method.name)
        try await ready(for: call)
        let (peer, keys) = try await storing(of: call) { try await provider(of: call) }
        underWay[call.id]?.peer = peer
        do {
            try await send(call, names, to: peer, keys, result)
        } catch let error as ServiceError where Self.mayBeGone.contains(error.code) {
            // It may be another install by now than it was a moment ago.
            known.remove(peer)
            let (newPeer, newKeys) = try await storing(of: call) { try await provider(of: call) }
            guard newPeer != peer else { throw error }
            underWay[call.id]?.peer = newPeer
            try await send(call, names, to: newPeer, newKeys, result)
        }
    }

    private static let mayBeGone: Set<ServiceError.Code> = [
        .applicationNotFound, .serviceNotFound, .serviceVersionNotFound,
    ]

    private func send(
        _ call: ServiceCall, _ names: [(path: String, name: RelativePath)], to peer: ServicePeer, _ keys: KeyBundle,
        _ result: PendingResult<ServiceReply>?
    ) async throws {
        if call.method == .frontRequest {
            try await askToFront(call, peer, keys)
            result?.resume(.success(ServiceReply()))
            return
        }
        let lifetime = Duration.seconds(max(60, call.deadlineSeconds + 3600))
        var left = try await leave(
            names, for: peer, lifetime: lifetime, until: { waitForStorage(of: call) },
            measuring: { consumerMeter(.sending, of: call.id, $0) }
        ) { path in
            clientListeners.tell([.didStartSending(to: ServiceApplication(peer), filename: path, id: call.id)])
        }
        do {
            let whole = SealedPayload(.value(call.parameters), files: left.files)
            let payload = try await shortened(
                whole, call.id, for: peer, lifetime: lifetime, left: &left, until: { waitForStorage(of: call) })
            try Task.checkCancellation()
            if let result { pending[call.id] = result }
            let uploads = left.ids
            try await withKeys(of: call, peer, keys) { keys in
                // The provider has the time that is left.
                var timed = call
                timed.deadlineSeconds = call.secondsLeft
                let request = timed
                let (body, stored) = try await storing(of: call) {
                    try await seal(request, payload, whole, to: peer, keys)
                }
                try Task.checkCancellation()
                ownMemory.calls[call.id] = stored
                let keptUntil = Self.now + (call.deadlineSeconds + ServiceBox.resultSeconds) * 1000
                try await storing(of: call) {
                    try await box.save(stored, body: body, claiming: uploads, keptUntil: keptUntil)
                }
                if await askLocally(body, stored) { return }
                try await post(body, call.id, until: call.endDate)
            }
            try Task.checkCancellation()
            await confirm(left)
        } catch {
            pending[call.id] = nil
            if Self.mayHaveArrived(error), let stored = ownMemory.calls[call.id] {
                takeBack(stored)
            } else {
                await forgetCall(call.id)
            }
            takeAway(left)
            throw error
        }
    }

    /// Has a request sealed and posted, and once again, for the same install, where that has another key by now.
    private func withKeys(
        of call: ServiceCall, _ peer: ServicePeer, _ keys: KeyBundle, _ post: (KeyBundle) async throws -> Void
    ) async throws {
        do {
            try await post(keys)
        } catch let error as ServiceError where error.code == .providerKeyChanged {
            var again = call
            again.to.device = peer.device
            known.remove(peer)
            let another = again
            let (_, newKeys) = try await storing(of: call) { try await provider(of: another, anew: true) }
            guard newKeys.id != keys.id else { throw error }
            try await post(newKeys)
        }
    }

    /// Nothing of it is kept: it is asked now, or not at all.
    private func askToFront(_ call: ServiceCall, _ peer: ServicePeer, _ keys: KeyBundle) async throws {
        let payload = SealedPayload(.value(call.parameters), files: [])
        try await withKeys(of: call, peer, keys) { keys in
            let (body, _) = try await storing(of: call) { try await seal(call, payload, payload, to: peer, keys) }
            _ = try await server.persist(until: call.endDate, .post, ServiceServer.path + "/requests", body)
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

    /// The names that files travel with: the given ones, and otherwise a relative path as it is, of another its last part. Equal names
    /// get numbers.
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

    /// Answers what is posted of a request, and what is to be known of it later.
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
            until: Int64(call.endDate.timeIntervalSince1970 * 1000), user: ownMemory.namedUsers[peer.device])
        return (body, stored)
    }

    private func post(_ body: [UInt8], _ id: String, until moment: Date) async throws {
        _ = try await server.persist(until: moment, .post, ServiceServer.path + "/requests", body)
        // The server has the request, and the same again is the same request.
        await change("note request as sent") { [box] in try await box.sent(id) }
    }

    /// What an earlier run stored, and the server may not have.
    func sendUnsent() async {
        // Cancelled: the next run sends them.
        guard let unsent = try? await storing({ try await box.unsent(at: Self.now) }) else { return }
        await withDiscardingTaskGroup { group in
            for (id, body) in unsent where pending[id] == nil && underWay[id] == nil {
                group.addTask { await self.sendAgain(id, body) }
            }
        }
    }

    private func sendAgain(_ id: String, _ body: [UInt8]) async {
        do {
            guard let call = try await storing({ try await self.call(id) }) else { return }
            let end = call.endDate ?? Date.now + TimeInterval(call.deadlineSeconds)
            do {
                try await post(body, id, until: end)
            } catch let error as ServiceError where error.code == .deadlineExceeded {
                // The server may have the request, and its answer was lost.
                guard try await hasResult(id, until: end + TimeInterval(ServiceBox.resultSeconds)) else { throw error }
                await change("note request as sent") { [box] in try await box.sent(id) }
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
            _ = try await server.persist(until: moment, .delete, "\(ServiceServer.path)/requests/\(id)")
            return false
        } catch let error as ServiceError {
            return error.code == .alreadyDelivered || error.code == .requestFinished
        }
    }

    // MARK: Results

    /// A reply came.
    func takeReply(_ stored: StoredServiceEvent, _ id: String, _ from: ServicePeer, _ content: SealedContent) async {
        let known: StoredCall?
        defer { keptByStorage.remove(id) }
        do {
            known = try await storing { try await call(id) }
        } catch {
            return logger.error("a reply waits for the next run", metadata: ["reason": "\(error)"])
        }
        guard let call = known, call.peer == from else {
            // Nobody asked, or somebody else was asked.
            logger.warning("A reply came that nobody waits for")
            removeReceived([], of: stored)
            return await forget(stored)
        }
        // The reply came in time, however long its files take.
        localTimes.removeValue(forKey: id)?.cancel()
        var received: [String] = []
        do {
            let payload = try await storing(until: { waitForStorage(of: call) }) {
                try await open(content, of: call, stored.number)
            }
            // The provider need not have said it before.
            if payload.saysThatRequestArrived { await tellReceived(id, nil) }
            let application = ServiceApplication(call.peer)
            let paths = try await receive(
                payload, stored, from: from, until: { waitForStorage(of: call) },
                measuring: { consumerMeter(.receiving, of: id, $0) }
            ) { count, files in
                clientListeners.tell(
                    [.willStartReceiving(from: application, count: count, id: id)]
                        + files.map {
                            .willStartReceivingFile(from: application, path: $0.path, size: $0.size, id: id)
                        })
            }
            received = paths
            switch payload.content {
            case .value(let value):
                let method = call.serviceMethod
                try await router.definition(of: method)?.check(reply: value, attachments: paths.count, of: method.name)
                await finish(
                    id, .success(ServiceReply(value, attachments: paths)), stored, fileBytes: payload.fileBytes)
            case .error(let error):
                removeReceived(received, of: stored)
                await finish(id, .failure(error), stored)
            case .attached: break
            }
        } catch let error as ServiceError {
            removeReceived(received, of: stored)
            await finish(id, .failure(error), stored)
        } catch {
            // The run ended, or the server does not give a file: the next run looks at it again.
            logger.info("a reply waits for the next run", metadata: ["reason": "\(type(of: error))"])
        }
    }

    /// Removes what was received of a reply that the app does not get.
    private func removeReceived(_ paths: [String], of stored: StoredServiceEvent) {
        inbox.giveUp(stored.number)
        let earlier = stored.directory.map { [box.store.paths.path($0)] } ?? []
        inbox.removeMessages(of: (paths + earlier).map(inbox.relative))
    }

    /// The provider has all of a request.
    func tellReceived(_ id: String, _ event: Int64?) async {
        if event == nil, let call = ownMemory.calls[id] {
            // It goes with its result.
            guard !call.isReceived else { return }
            ownMemory.calls[id]?.isReceived = true
            return tellReceived(call)
        }
        ownMemory.calls[id]?.isReceived = true
        await change("note request as received") { [weak self, box] in
            if let call = try await box.received(id, event: event) { await self?.tellReceived(call) }
        }
    }

    /// The request ends without a result.
    func forgetCall(_ id: String) async {
        await change("forget request") { [weak self] in _ = try await self?.finishCall(id) }
    }

    private func tellReceived(_ call: StoredCall) {
        let parameters = JSONValue(parsing: Array(call.parameters.utf8)).flatMap { ServiceValue(json: $0) } ?? .null
        clientListeners.tell([
            .didFinishSending(
                to: ServiceApplication(call.peer), attachments: call.attachments.map { box.store.paths.path($0) },
                parameters: parameters, id: call.id)
        ])
    }

    private func open(
        _ content: SealedContent, of call: StoredCall, _ number: Int64
    ) async throws -> SealedPayload {
        guard let own = ownPeer, let key = try await ownKey(named: content.keyID), key.name == call.key else {
            throw ServiceError(.sealInvalid, "The reply is sealed to another key than the request named.")
        }
        try await believe(content.sender, of: call.peer, user: call.user)
        let context = SealContext(
            direction: .reply, id: call.id, consumer: own, provider: call.peer, senderKey: content.sender.id,
            receiverKey: key.name, method: call.serviceMethod, deadlineSeconds: call.deadlineSeconds,
            foreground: call.foreground, files: content.files, fileBytes: content.fileBytes, requestHash: Array(call.hash))
        let bytes = try ServiceSeal.open(
            .init(encapsulated: content.encapsulated, body: content.body), with: key.key, from: content.sender.key, context)
        return try await payload(bytes, number, content)
    }

    // MARK: Taking back

    /// Answers whether the request was gone before it was delivered.
    func cancel(_ id: String) async throws -> Bool {
        if cancelUnderWay(id) { return true }
        guard let call = try await call(id) else {
            throw ServiceError(.requestUnknown, "This device did not ask that, or has the result.")
        }
        if await cancelLocally(call) { return false }
        do {
            _ = try await server.persist(until: .now + 30, .delete, "\(ServiceServer.path)/requests/\(id)")
        } catch let error as ServiceError where error.code == .alreadyDelivered || error.code == .requestFinished {
            return false
        } catch let error as ServiceError where error.code == .requestUnknown {
            // The server never had it.
        }
        await forgetCall(id)
        removeAttachments(call.files)
        clientProgress.ended(id)
        pending.removeValue(forKey: id)?.resume(.failure(Self.wasCancelled))
        return true
    }

    /// Nobody waits for a request any more: the server is told, its files are removed, and the result that comes all the same is nobody's.
    func takeBack(_ id: String) {
        pending[id] = nil
        guard let call = ownMemory.calls[id] else { return }
        takeBack(call)
    }

    func takeBack(_ call: StoredCall) {
        clientProgress.ended(call.id)
        ownMemory.calls[call.id] = nil
        localTimes.removeValue(forKey: call.id)?.cancel()
        guard takingBack[call.id] == nil else { return }
        let work = underWay[call.id]?.work
        // Ends with the server's answers, after ten minutes for each, or with the engine, though the task is cancelled that asked. It does not
        // keep the engine.
        takingBack[call.id] = Task { [weak self, server, box] in
            // The next run goes on until the server has answered.
            await self?.change("take back request") { try await box.takeBack(call.id) }
            // The server hears of the request before it hears that nobody wants it.
            await work?.value
            if let isLocal = await self?.cancelLocally(call) {
                let request = isLocal ? [] : ["\(ServiceServer.path)/requests/\(call.id)"]
                var isDone = true
                for path in request + call.files.map({ "/v1/attachments/\($0)" }) where isDone {
                    isDone = await ServiceEngine.isRemoved(path, at: server)
                }
                if isDone { await self?.forgetCall(call.id) }
            }
            await self?.tookBack(call.id)
        }
    }

    private func tookBack(_ id: String) { takingBack[id] = nil }

    /// Goes on with what an earlier run took back.
    func takeBackAgain() async {
        // Cancelled: the next run goes on.
        guard let calls = try? await storing({ try await box.takenBack() }) else { return }
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
            until: .now + 30, .delete, "\(ServiceServer.path)/requests?app=\(application.app)&device=\(device)")
        guard case .array(let ids)? = answer["cancelled"] else { return early }
        for case .string(let id) in ids {
            if let call = try await call(id) { removeAttachments(call.files) }
            await forgetCall(id)
            clientProgress.ended(id)
            pending.removeValue(forKey: id)?.resume(.failure(Self.wasCancelled))
        }
        return ids.count + early
    }
}
