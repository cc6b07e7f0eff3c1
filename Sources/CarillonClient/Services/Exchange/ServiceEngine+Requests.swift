import CarillonBasics
import CarillonWire
import Logging

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The handling of requests of other devices.
extension ServiceEngine {
    /// Handles a request: opens it, fetches its files, calls its handler, and sends its result.
    func handleRequest(
        _ stored: StoredServiceEvent, _ header: RequestHeader, _ from: ServicePeer, _ expiresAt: Int64,
        _ content: SealedContent
    ) async {
        let id = header.id.description
        defer {
            incoming[id] = nil
            providerProgress.ended(id)
        }
        // The server's clock decides, and this device's clock may be wrong. This deadline only ends late requests, also over
        // several runs.
        let arrived = stored.arrivedAt.map { Date(timeIntervalSince1970: Double($0) / 1000) } ?? .now
        let deadline = min(arrived, .now) + TimeInterval(header.deadlineSeconds)
        do {
            if header.isOfFrontService {
                return try await handleFrontRequest(stored, header, from, content, until: deadline)
            }
            if let reply = stored.reply {
                do {
                    return try await post(reply, to: id, stored, from, [], until: deadline)
                } catch let error as ServiceError {
                    files.removeAttachments(stored.replyFiles)
                    throw error
                }
            }
            guard Date.now < deadline else { throw CancellationError() }
            let answer = try await withDeadline(deadline) { () async throws -> Decided in
                try await self.answer(stored, header, from, expiresAt, content)
            }
            do {
                try await post(answer.reply, to: id, stored, from, answer.attachments, until: deadline)
            } catch let error as ServiceError {
                // The consumer does not receive this reply, so it does not fetch the files.
                files.removeAttachments(answer.files)
                throw error
            }
        } catch is CancellationError {
            // The run ended: the next run continues.
            guard Date.now >= deadline else { return box.scheduleEnd(of: stored, logger: logger) }
            if incoming[id]?.isWaitingForStorage == true {
                let error = ServiceError(.storageUnavailable, "The request could not be stored until its deadline.")
                providerListeners.notify([.requestFailed(from: ServiceApplication(from), error, id: id)])
            }
            inbox.discard(stored.number)
            await abandonDraft(of: stored.number)
            await deleteEvent(stored)
        } catch let error as ServiceError {
            // The server refuses the reply, or there is no consumer.
            logger.info("cannot reply to request", metadata: ["code": "\(error.code)"])
            inbox.discard(stored.number)
            await deleteEvent(stored)
        } catch {
            box.scheduleEnd(of: stored, logger: logger)
            logger.error("a request waits for the next run", metadata: ["reason": "\(error)"])
        }
    }

    /// Handles the cancellation of a request by its consumer.
    func cancelled(_ id: String) async {
        guard let work = incoming[id] else { return }
        incoming[id]?.isUnwanted = true
        await storage.change("note cancellation") { [box] in try await box.unwanted(work.number) }
        if let handler = incoming[id]?.handler {
            handler.cancel()
            // The handler can take a while to end.
            box.scheduleEnd(of: work.number, starts: work.starts, logger: logger)
        }
        incoming[id]?.uploading?.cancel()
        providerListeners.notify([.cancelled(id: id)])
    }

    /// Repeats work of a request that fails because of the storage, until the deadline of the request cancels it.
    func storing<Value: Sendable>(for id: String, _ work: () async throws -> Value) async throws -> Value {
        let value = try await storage.storing(until: { waitForStorage(id) }, work)
        incoming[id]?.isWaitingForStorage = false
        return value
    }

    private func waitForStorage(_ id: String) -> Date {
        incoming[id]?.isWaitingForStorage = true
        return .distantFuture
    }

    private func withDeadline<Value: Sendable>(
        _ deadline: Date, _ work: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        try await withThrowingTaskGroup(of: Value.self) { group in
            group.addTask { try await work() }
            group.addTask {
                try await Task.sleep(for: .seconds(max(0, deadline.timeIntervalSinceNow)))
                throw CancellationError()
            }
            defer { group.cancelAll() }
            guard let value = try await group.next() else { throw CancellationError() }
            return value
        }
    }

    /// The body of a reply, with the local paths of its files and their ids on the server.
    private struct Decided: Sendable {
        var reply: [UInt8]
        var attachments: [String]
        var files: [String]
    }

    /// Handles a request, and returns its reply.
    private func answer(
        _ stored: StoredServiceEvent, _ header: RequestHeader, _ from: ServicePeer, _ expiresAt: Int64,
        _ content: SealedContent
    ) async throws -> Decided {
        guard content.sender.isSigned(for: from.device) else {
            throw ServiceError(.sealInvalid, "The consumer's key is not signed.")
        }
        var payload: SealedPayload
        var uploaded = ServiceFiles.Uploaded()
        var attachments: [String] = []
        do {
            let id = header.id.description
            let draft: ReplyDraft
            if let known = stored.draft {
                guard incoming[id]?.isUnwanted == false else {
                    await abandonDraft(of: stored.number)
                    throw CancellationError()
                }
                draft = known
                incoming[id]?.hasArrived = true
            } else {
                let reply = try await handle(stored, header, from, expiresAt, content)
                draft = try await self.draft(reply, of: stored.number, for: id)
            }
            uploaded = try await uploadFilesUnlessCancelled(draft, of: stored.number, for: id, to: from)
            payload = SealedPayload(.value(try draft.value()), files: uploaded.files)
            attachments = draft.files.map { path(of: $0) }
        } catch is CancellationError {
            guard !Task.isCancelled, incoming[header.id.description] != nil else { throw CancellationError() }
            payload = SealedPayload(.error(ServiceError(.cancelled, "The provider ended it, as it was cancelled.")))
        } catch let error as ServiceError {
            // The run ended: a handler that was cancelled may throw any error.
            try Task.checkCancellation()
            payload = SealedPayload(.error(Self.domained(error, by: header.service.text)))
        } catch let error as PushError {
            throw error
        } catch {
            try Task.checkCancellation()
            // An error of the app can contain confidential text.
            payload = SealedPayload(.error(ServiceError(.serviceFailed, "The provider failed.")))
        }
        // The device may have another user by now.
        guard incoming[header.id.description] != nil else {
            files.cancelUploads(uploaded)
            throw CancellationError()
        }
        let reply: [UInt8]
        let drafted = Set(uploaded.ids)
        var attachedIDs: [String] = []
        do {
            let id = header.id.description
            incoming[id]?.isWaitingForStorage = false
            let sealed: SealedPayload
            do {
                sealed = try await files.shortened(
                    payload, id, for: from, lifetime: .seconds(ServiceBox.resultSeconds), uploaded: &uploaded,
                    until: { waitForStorage(id) })
            } catch let error as ServiceError {
                files.cancelUploads(uploaded)
                (uploaded, payload) = (ServiceFiles.Uploaded(), SealedPayload(.error(error)))
                sealed = payload
            }
            attachedIDs = sealed.attachedIDs
            let whole = payload
            reply = try await storing(for: id) { try await seal(sealed, whole, header, from, content) }
            try await reportReceived(before: payload, header.id, from, isLocal: stored.isLocal)
            if uploaded.ids.isEmpty, incoming[id]?.isOnce == false {
                // If this change is lost, the request is handled once more.
                Task {
                    await storage.change("note reply") { [box] in
                        try await box.decided(stored.number, reply: reply, claiming: [])
                    }
                }
            } else {
                let uploads = uploaded.ids
                let files = uploaded.files.map(\.manifest.id) + attachedIDs
                try await storing(for: id) {
                    try await box.decided(stored.number, reply: reply, claiming: uploads, files: files)
                }
            }
        } catch {
            // If the run ended, the next run continues the uploads of the draft.
            if error is CancellationError { uploaded.uploads.removeAll { drafted.contains($0.id) } }
            files.cancelUploads(uploaded)
            throw error
        }
        await files.confirm(uploaded)
        return Decided(
            reply: reply, attachments: attachments, files: uploaded.files.map(\.manifest.id) + attachedIDs)
    }

    /// Returns an error with the domain of its service.
    private static func domained(_ error: ServiceError, by service: String) -> ServiceError {
        var error = error
        if error.code == .custom { error.domain = service }
        if let details = error.details, !details.isValid { error.details = nil }
        return error
    }

    private func handle(
        _ stored: StoredServiceEvent, _ header: RequestHeader, _ from: ServicePeer, _ expiresAt: Int64,
        _ content: SealedContent
    ) async throws -> ServiceReply {
        let id = header.id.description
        let method = ServiceMethod(header.service.text, header.version.text, header.method.text)
        try await storing(for: id) {
            try await authenticate(content.sender, of: from, user: header.user)
            if !stored.isLocal { try await authorizeLocalRequests(of: from) }
        }
        guard incoming[id]?.exceedsLimit == false else {
            throw ServiceError(.providerBusy, "The provider has too much to do.")
        }
        let payload = try await storing(for: id) { try await open(header, from, content, stored.number) }
        guard case .value(let parameters) = payload.content else {
            throw ServiceError(.serviceParametersInvalid, "A request has parameters, and no error.")
        }
        try checkStarts(of: stored, header.id, method, from: from)
        let route = try await router.route(method)
        let definition = await router.definition(of: method)
        try definition?.check(parameters, attachments: payload.files.count, of: method.name)
        let application = ServiceApplication(from)
        let paths = try await files.receive(
            payload, stored, from: from, until: { waitForStorage(id) },
            measuring: { providerMeter(.receiving, of: id, $0) }
        ) { count, files in
            providerListeners.notify(
                [.willStartReceiving(from: application, count: count, id: id)]
                    + files.map { .willStartReceivingFile(from: application, path: $0.path, size: $0.size, id: id) })
        }
        incoming[id]?.hasArrived = true
        let notifying = Task { try await self.notifyReceived(header.id, from, isLocal: stored.isLocal) }
        defer { notifying.cancel() }
        if route.atMostOnce {
            guard !stored.isBegun else {
                throw ServiceError(.serviceFailed, "The provider was stopped while it handled the request.")
            }
            incoming[id]?.isOnce = true
        }
        if stored.starts > 0 { try await suspects.wait(for: .request(stored.number)) }
        defer { suspects.end(.request(stored.number)) }
        while isBetweenUsers { try await Task.sleep(for: .milliseconds(100)) }
        guard incoming[id] != nil else { throw CancellationError() }
        try await storing(for: id) { try await box.begun(stored, atMostOnce: route.atMostOnce) }
        incoming[id]?.isWaitingForStorage = false
        let request = ServiceRequest(
            id: id, consumer: application, method: method, parameters: parameters, attachments: paths,
            foreground: .init(rawValue: header.foreground.rawValue) ?? .none, user: header.user,
            deadline: Date(timeIntervalSince1970: Double(expiresAt) / 1000))
        guard incoming[id]?.isUnwanted == false else { throw CancellationError() }
        providerListeners.notify([.didReceive(request)])
        let handler = Task { try await route.handler(request) }
        incoming[id]?.handler = handler
        let reply: ServiceReply
        do {
            reply = try await withTaskCancellationHandler {
                try await handler.value
            } onCancel: {
                handler.cancel()
                box.scheduleEnd(of: stored, logger: logger)
            }
        } catch is PushError {
            // The error is the app's own, from its own use of this library.
            throw ServiceError(.serviceFailed, "The provider failed.")
        }
        // The transfer of the reply's files can take long, and is not part of the handler.
        if !reply.attachments.isEmpty { box.scheduleEnd(of: stored, logger: logger) }
        try definition?.check(reply: reply.value, attachments: reply.attachments.count, of: method.name)
        return reply
    }

    /// Notifies the consumer that the provider has the whole request. A result that is sent soon makes the notification
    /// unnecessary.
    private func notifyReceived(_ id: ServiceRequestID, _ from: ServicePeer, isLocal: Bool) async throws {
        try await Task.sleep(for: Self.soon)
        try await reportReceived(id, from, isLocal: isLocal)
    }

    /// Reports the receipt before a reply that does not imply it: an error that a request without receipt can have as well.
    private func reportReceived(
        before reply: SealedPayload, _ id: ServiceRequestID, _ from: ServicePeer, isLocal: Bool
    ) async throws {
        guard !reply.impliesReceipt, incoming[id.description]?.hasArrived == true else { return }
        do {
            try await reportReceived(id, from, isLocal: isLocal)
        } catch is ServiceError {
            // The server also refuses the reply, for the same reason.
        }
    }

    private func reportReceived(_ id: ServiceRequestID, _ from: ServicePeer, isLocal: Bool) async throws {
        if isLocal, let local, await local.send(ServiceEvent.received(id).body, to: from.device) { return }
        // The caller cancels this at the end of the request.
        _ = try await server.persist(until: .distantFuture, .post, "\(ServiceAPI.path)/requests/\(id)/received")
    }

    private static let soon = Duration.milliseconds(20)

    private func handleFrontRequest(
        _ stored: StoredServiceEvent, _ header: RequestHeader, _ from: ServicePeer, _ content: SealedContent,
        until deadline: Date
    ) async throws {
        try await storage.storing(until: { deadline }) {
            try await authenticate(content.sender, of: from, user: header.user)
            _ = try await open(header, from, content, stored.number)
        }
        providerListeners.notify([.frontRequested(by: ServiceApplication(from))])
        await deleteEvent(stored)
    }

    private func open(
        _ header: RequestHeader, _ from: ServicePeer, _ content: SealedContent, _ number: Int64
    ) async throws -> SealedPayload {
        guard let own = ownPeer, let key = try await agreementKey(named: content.keyID) else {
            throw ServiceError(.providerKeyMissing, "The key that the request was sealed with is gone.")
        }
        let bytes = try ServiceSeal.open(
            .init(encapsulated: content.encapsulated, body: content.body), with: key.key, from: content.sender.key,
            Self.context(.request, header, consumer: from, provider: own, content, sender: content.sender.id))
        return try await files.payload(bytes, number, content)
    }

    private static func context(
        _ direction: SealContext.Direction, _ header: RequestHeader, consumer: ServicePeer, provider: ServicePeer,
        _ content: SealedContent, sender: String
    ) -> SealContext {
        SealContext(
            direction: direction, id: header.id.description, consumer: consumer, provider: provider, senderKey: sender,
            receiverKey: content.keyID,
            method: ServiceMethod(header.service.text, header.version.text, header.method.text),
            deadlineSeconds: header.deadlineSeconds, foreground: header.foreground.rawValue, files: content.files,
            fileBytes: content.fileBytes)
    }

    /// Seals a result with the consumer's key from the request.
    private func seal(
        _ payload: SealedPayload, _ whole: SealedPayload, _ header: RequestHeader, _ from: ServicePeer,
        _ content: SealedContent
    ) async throws -> [UInt8] {
        guard let own = ownPeer else { throw ServiceError(.callForbidden, "The device is not registered any more.") }
        let (keys, bundle) = try await keysForOthers()
        var reply = SealedContent(
            keyID: content.sender.id, sender: bundle, encapsulated: [], body: [],
            files: whole.files.count, fileBytes: whole.fileBytes)
        var context = Self.context(.reply, header, consumer: from, provider: own, reply, sender: keys.key.name)
        context.requestHash = ServiceSeal.Sealed(encapsulated: content.encapsulated, body: content.body).hash
        let sealed = try ServiceSeal.seal(payload.bytes, to: content.sender.key, from: keys.key.key, context)
        (reply.encapsulated, reply.body) = (sealed.encapsulated, sealed.body)
        return JSONValue.object(reply.members).bytes
    }

    private func post(
        _ reply: [UInt8], to id: String, _ stored: StoredServiceEvent, _ from: ServicePeer, _ attachments: [String],
        until deadline: Date
    ) async throws {
        if stored.isLocal, let requestID = ServiceRequestID(id) {
            try await replyLocally(reply, to: requestID, from, until: deadline)
        } else {
            _ = try await server.persist(until: deadline, .post, "\(ServiceAPI.path)/requests/\(id)/reply", reply)
        }
        await deleteEvent(stored)
        // The device may have another user by now.
        guard incoming[id] != nil else { return }
        providerListeners.notify([
            .didFinishSending(to: ServiceApplication(from), attachments: attachments, id: id)
        ])
    }
}
