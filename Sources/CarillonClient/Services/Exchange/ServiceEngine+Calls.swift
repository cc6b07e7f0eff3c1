import CarillonBasics
import CarillonWire
import Logging

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// What an app asks of others.
struct ServiceCall: Sendable {
    var id: String
    var method: ServiceMethod
    var to: ServiceApplication
    var parameters: ServiceValue
    var attachments: [String]
    var deadlineSeconds: Int64
    var foreground: ForegroundPreference
}

extension ServiceEngine {
    // MARK: Providers

    func find(_ query: [(String, String?)]) async throws -> [(provider: FoundProvider, keys: KeyBundle)] {
        let parts = query.compactMap { name, value in value.map { "\(name)=\($0)" } }
        guard parts.allSatisfy({ $0.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != 0x26 && $0 != 0x23 && $0 != 0x25 } })
        else {
            throw ServiceError(.applicationNotFound, "What is looked for is no name.")
        }
        try await ready()
        let path = ServiceServer.path + (parts.isEmpty ? "" : "?" + parts.joined(separator: "&"))
        let answer = try await server.persist(until: .now + 30, .get, path)
        guard case .array(let providers)? = answer["providers"] else { return [] }
        return providers.compactMap { json in
            guard let peer = ServicePeer(json), case .string(let name)? = json["name"],
                case .string(let version)? = json["version"], case .bool(let isLive)? = json["live"],
                case .array(let services)? = json["services"], let keys = json["keys"].flatMap(KeyBundle.init)
            else { return nil }
            let offers = services.compactMap { service -> FoundProvider.Service? in
                guard case .string(let id)? = service["id"], case .string(let version)? = service["version"] else {
                    return nil
                }
                return .init(id: id, version: version)
            }
            return (
                FoundProvider(
                    application: ServiceApplication(peer), name: name, version: version, isLive: isLive, services: offers,
                    fingerprint: Fingerprint.text(of: keys.identity)), keys
            )
        }
    }

    /// The install of an app that a request goes to, and its key.
    private func provider(of call: ServiceCall) async throws -> (peer: ServicePeer, keys: KeyBundle) {
        let found = try await find([("app", call.to.app), ("device", call.to.device)])
        let offering = found.first { $0.provider.services.contains { $0.id == call.method.service } } ?? found.first
        guard let offering, let device = offering.provider.application.device else {
            throw ServiceError(.applicationNotFound, "There is no such provider that this device may call.")
        }
        let peer = ServicePeer(app: offering.provider.application.app, device: device)
        guard call.to.device == nil || call.to.device == device, peer.app == call.to.app else {
            throw ServiceError(.applicationNotFound, "The server found another provider than was asked for.")
        }
        try await believe(offering.keys, of: peer)
        return (peer, offering.keys)
    }

    // MARK: Sending

    /// Sends a request. Its one result is in `result` from then on, and in ``late`` for a later run.
    func send(_ call: ServiceCall, result: PendingResult<ServiceReply>?) async throws {
        let names = try Self.check(call)
        try await router.definition(of: call.method)?.check(
            call.parameters, attachments: names.count, of: call.method.name)
        let (peer, keys) = try await provider(of: call)
        let lifetime = Duration.seconds(max(60, call.deadlineSeconds + 3600))
        var left = try await leave(names, for: peer, lifetime: lifetime) { path in
            clientListeners.tell([.didStartSending(to: ServiceApplication(peer), filename: path, id: call.id)])
        }
        do {
            let whole = SealedPayload(.value(call.parameters), files: left.files)
            let payload = try await shortened(whole, call.id, for: peer, lifetime: lifetime, left: &left)
            if let result { pending[call.id] = result }
            do {
                try await post(try await seal(call, payload, whole, left, to: peer, keys), call)
            } catch let error as ServiceError where error.code == .providerKeyChanged {
                // It is sealed once again, for the same install.
                var again = call
                again.to.device = peer.device
                let (_, newKeys) = try await provider(of: again)
                guard newKeys.id != keys.id else { throw error }
                try await post(try await seal(call, payload, whole, left, to: peer, newKeys), call)
            }
            await confirm(left)
        } catch {
            // A run that ends goes on with it in the next; whoever waits has the result by then.
            if error is CancellationError { takeBack(call.id) }
            pending[call.id] = nil
            _ = try? await box.finish(call.id)
            takeAway(left)
            throw error
        }
    }

    private static func check(_ call: ServiceCall) throws -> [(path: String, name: RelativePath)] {
        guard ServiceID(call.method.service) != nil, ServiceVersion(call.method.version) != nil,
            MethodName(call.method.name) != nil
        else { throw ServiceError(.serviceMethodNotFound, "\(call.method) is not the name of a method.") }
        guard AppID(call.to.app) != nil, call.to.device.map({ DeviceID($0) != nil }) ?? true else {
            throw ServiceError(.applicationNotFound, "\(call.to.app) is not the name of an app and its install.")
        }
        guard call.parameters.isValid else {
            throw ServiceError(.serviceParametersInvalid, "A value of a service is simple, or an array or object of such.")
        }
        guard (1...RequestHeader.longestDeadlineSeconds).contains(call.deadlineSeconds) else {
            throw ServiceError(.deadlineExceeded, "A deadline is one second to seven days.")
        }
        return try names(of: call.attachments)
    }

    /// The names that files travel with: a relative path as it is, of another its last part.
    static func names(of paths: [String]) throws -> [(path: String, name: RelativePath)] {
        guard paths.count <= SealedContent.mostFiles else {
            throw ServiceError(.requestTooLarge, "There are up to \(SealedContent.mostFiles) files.")
        }
        var bytes: Int64 = 0
        let names = try paths.map { path in
            let text = path.hasPrefix("/") ? path.split(separator: "/").last.map(String.init) ?? "" : path
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
        guard !RelativePath.collide(names.map(\.1)) else {
            throw ServiceError(.pathInvalid, "Two files have one name; relative paths can tell them apart.")
        }
        return names
    }

    /// Seals a request, and stores what is posted of it.
    private func seal(
        _ call: ServiceCall, _ payload: SealedPayload, _ whole: SealedPayload, _ left: Left, to peer: ServicePeer,
        _ keys: KeyBundle
    ) async throws -> [UInt8] {
        guard let own = ownPeer else { throw ServiceError(.callForbidden, "The device is not registered yet.") }
        let ownKeys = try await box.keys(at: Self.now)
        let context = SealContext(
            direction: .request, id: call.id, consumer: own, provider: peer, senderKey: ownKeys.key.name,
            receiverKey: keys.id, method: call.method, deadlineSeconds: call.deadlineSeconds,
            foreground: call.foreground.rawValue, files: whole.files.count, fileBytes: whole.fileBytes)
        let sealed = try ServiceSeal.seal(payload.bytes, to: keys.key, from: ownKeys.key.key, context)
        let content = SealedContent(
            keyID: keys.id, sender: try ownKeys.bundle(of: own.device), encapsulated: sealed.encapsulated, body: sealed.body,
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
            key: ownKeys.key.name, hash: Data(sealed.hash), attachments: call.attachments,
            files: whole.files.map(\.manifest.id))
        try await box.save(
            stored, body: body, claiming: left.ids,
            keptUntil: Self.now + (call.deadlineSeconds + ServiceBox.resultSeconds) * 1000)
        return body
    }

    private func post(_ body: [UInt8], _ call: ServiceCall) async throws {
        let moment = Date.now + TimeInterval(call.deadlineSeconds)
        _ = try await server.persist(until: moment, .post, ServiceServer.path + "/requests", body)
        try await box.sent(call.id)
    }

    /// What an earlier run stored, and the server may not have.
    func sendUnsent() async {
        let unsent = (try? await box.unsent(at: Self.now)) ?? []
        await withDiscardingTaskGroup { group in
            for (id, body) in unsent where pending[id] == nil {
                group.addTask { await self.sendAgain(id, body) }
            }
        }
    }

    private func sendAgain(_ id: String, _ body: [UInt8]) async {
        guard let call = try? await box.call(id) else { return }
        do {
            let moment = Date.now + TimeInterval(call.deadlineSeconds)
            _ = try await server.persist(until: moment, .post, ServiceServer.path + "/requests", body)
            try await box.sent(id)
        } catch let error as ServiceError {
            await finish(id, .failure(error), nil)
        } catch {}
    }

    // MARK: Results

    /// A reply came.
    func takeReply(_ stored: StoredServiceEvent, _ id: String, _ from: ServicePeer, _ content: SealedContent) async {
        guard let call = try? await box.call(id), call.peer == from else {
            // Nobody asked, or somebody else was asked.
            logger.warning("A reply came that nobody waits for")
            return await forget(stored)
        }
        do {
            let payload = try await open(content, of: call, stored.number)
            let application = ServiceApplication(call.peer)
            let paths = try await receive(payload, stored, from: from) { count, files in
                clientListeners.tell(
                    [.willStartReceiving(from: application, count: count, id: id)]
                        + files.map {
                            .willStartReceivingFile(from: application, path: $0.path, size: $0.size, id: id)
                        })
            }
            switch payload.content {
            case .value(let value):
                let method = call.serviceMethod
                try await router.definition(of: method)?.check(reply: value, attachments: paths.count, of: method.name)
                await finish(id, .success(ServiceReply(value, attachments: paths)), stored)
            case .error(let error): await finish(id, .failure(error), stored)
            case .attached: break
            }
        } catch let error as ServiceError {
            inbox.giveUp(stored.number)
            await finish(id, .failure(error), stored)
        } catch {
            // The run ended, or the storage is away: the next one looks at it again.
            logger.info("A reply waits", metadata: ["reason": "\(type(of: error))"])
        }
    }

    private func open(
        _ content: SealedContent, of call: StoredCall, _ number: Int64
    ) async throws -> SealedPayload {
        guard let own = ownPeer, let key = try await box.key(named: content.keyID), key.name == call.key else {
            throw ServiceError(.sealInvalid, "The reply is sealed to another key than the request named.")
        }
        try await believe(content.sender, of: call.peer)
        let context = SealContext(
            direction: .reply, id: call.id, consumer: own, provider: call.peer, senderKey: content.sender.id,
            receiverKey: key.name, method: call.serviceMethod, deadlineSeconds: call.deadlineSeconds,
            foreground: call.foreground, files: content.files, fileBytes: content.fileBytes, requestHash: Array(call.hash))
        let bytes = try ServiceSeal.open(
            .init(encapsulated: content.encapsulated, body: content.body), with: key.key, from: content.sender.key, context)
        return try await payload(bytes, number, content)
    }

    /// Gives a request its one result: to who waits for it, or to the next who reads late replies.
    func finish(_ id: String, _ result: Result<ServiceReply, ServiceError>, _ stored: StoredServiceEvent?) async {
        guard let call = try? await box.call(id) else {
            if let stored { await forget(stored) }
            return
        }
        let application = ServiceApplication(call.peer)
        let done: @Sendable () async -> Void = { [box, logger] in
            do {
                _ = try await box.finish(id, event: stored?.number)
            } catch {
                logger.error("A result could not be forgotten", metadata: ["reason": "\(error)"])
            }
        }
        // What nobody fetched, or what was fetched by who could not say so, need not be kept.
        removeAttachments(call.files)
        clientListeners.tell([.didReceive(from: application, result, id: id)])
        if let waiting = pending.removeValue(forKey: id) {
            await done()
            waiting.resume(result.mapError { $0 })
        } else {
            late.add(LateReply(id: id, provider: application, method: call.serviceMethod, result: result, done: done))
        }
    }

    // MARK: Taking back

    /// Answers whether the request was gone before it was delivered.
    func cancel(_ id: String) async throws -> Bool {
        guard let call = try await box.call(id) else {
            throw ServiceError(.requestUnknown, "This device did not ask that, or has the result.")
        }
        do {
            _ = try await server.persist(until: .now + 30, .delete, "\(ServiceServer.path)/requests/\(id)")
        } catch let error as ServiceError where error.code == .alreadyDelivered || error.code == .requestFinished {
            return false
        } catch let error as ServiceError where error.code == .requestUnknown {
            // The server never had it.
        }
        _ = try await box.finish(id)
        removeAttachments(call.files)
        pending.removeValue(forKey: id)?.resume(.failure(ServiceError(.cancelled, "The request was cancelled.")))
        return true
    }

    /// Nobody waits for it any more: the server is told, and the result that comes all the same is nobody's.
    func takeBack(_ id: String) {
        pending[id] = nil
        // Ends with one request, which has a time limit, though the task is cancelled that asked.
        Task {
            let call = try? await box.call(id)
            let answer = await server.ask(.delete, "\(ServiceServer.path)/requests/\(id)")
            _ = try? await box.finish(id)
            if case .done = answer, let call { removeAttachments(call.files) }
        }
    }

    func cancelAll(to application: ServiceApplication) async throws -> Int {
        let device = application.device ?? ""
        guard AppID(application.app) != nil, DeviceID(device) != nil else {
            throw ServiceError(.applicationNotFound, "All requests are cancelled to one install of an app.")
        }
        let answer = try await server.persist(
            until: .now + 30, .delete, "\(ServiceServer.path)/requests?app=\(application.app)&device=\(device)")
        guard case .array(let ids)? = answer["cancelled"] else { return 0 }
        for case .string(let id) in ids {
            if let call = try await box.call(id) { removeAttachments(call.files) }
            _ = try await box.finish(id)
            pending.removeValue(forKey: id)?.resume(.failure(ServiceError(.cancelled, "The request was cancelled.")))
        }
        return ids.count
    }
}
