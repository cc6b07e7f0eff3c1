import CarillonBasics
import CarillonWire
import Logging

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The handling of events of the app's requests: their receipt by the provider, and replies.
extension ServiceEngine {
    /// Handles a reply.
    func handleReply(_ stored: StoredServiceEvent, _ id: String, _ from: ServicePeer, _ content: SealedContent) async {
        let known: StoredCall?
        defer { outgoing.waitingForStorage.remove(id) }
        do {
            known = try await storage.storing { try await call(id) }
        } catch {
            return logger.error("a reply waits for the next run", metadata: ["reason": "\(error)"])
        }
        guard let call = known, call.peer == from else {
            // This device made no such request, or sent it to another device.
            logger.warning("received reply without a request")
            removeReceived([], of: stored)
            return await deleteEvent(stored)
        }
        // The reply arrived in time, also if the transfer of its files takes longer.
        outgoing.cancelTimer(of: id)
        var received: [String] = []
        do {
            let payload = try await storage.storing(until: { waitForStorage(of: call) }) {
                try await open(content, of: call, stored.number)
            }
            // The provider may not have reported the receipt before.
            if payload.impliesReceipt { await notifyReceived(id, nil) }
            let application = ServiceApplication(call.peer)
            let paths = try await files.receive(
                payload, stored, from: from, until: { waitForStorage(of: call) },
                measuring: { consumerMeter(.receiving, of: id, $0) }
            ) { count, files in
                clientListeners.notify(
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
            // The run ended, or the server does not send a file: the next run handles the reply again.
            logger.info("a reply waits for the next run", metadata: ["reason": "\(type(of: error))"])
        }
    }

    /// Removes the received files of a reply that is not delivered to the app.
    private func removeReceived(_ paths: [String], of stored: StoredServiceEvent) {
        inbox.discard(stored.number)
        let earlier = stored.directory.map { [box.store.paths.path($0)] } ?? []
        inbox.removeMessages(of: (paths + earlier).map(inbox.relative))
    }

    /// Notifies the app that the provider received the whole request.
    func notifyReceived(_ id: String, _ event: Int64?) async {
        if event == nil, let call = ownCache.calls[id] {
            // The stored call is removed with its result.
            guard !call.isReceived else { return }
            ownCache.calls[id]?.isReceived = true
            return notifyReceived(call)
        }
        ownCache.calls[id]?.isReceived = true
        await storage.change("note request as received") { [weak self, box] in
            if let call = try await box.received(id, event: event) { await self?.notifyReceived(call) }
        }
    }

    /// Ends a request without a result.
    func deleteCall(_ id: String) async {
        await storage.change("forget request") { [weak self] in _ = try await self?.finishCall(id) }
    }

    private func notifyReceived(_ call: StoredCall) {
        let parameters = JSONValue(parsing: Array(call.parameters.utf8)).flatMap { ServiceValue(json: $0) } ?? .null
        clientListeners.notify([
            .didFinishSending(
                to: ServiceApplication(call.peer), attachments: call.attachments.map { box.store.paths.path($0) },
                parameters: parameters, id: call.id)
        ])
    }

    private func open(
        _ content: SealedContent, of call: StoredCall, _ number: Int64
    ) async throws -> SealedPayload {
        guard let own = ownPeer, let key = try await agreementKey(named: content.keyID), key.name == call.key else {
            throw ServiceError(.sealInvalid, "The reply is sealed to another key than the request named.")
        }
        try await authenticate(content.sender, of: call.peer, user: call.user)
        let context = SealContext(
            direction: .reply, id: call.id, consumer: own, provider: call.peer, senderKey: content.sender.id,
            receiverKey: key.name, method: call.serviceMethod, deadlineSeconds: call.deadlineSeconds,
            foreground: call.foreground, files: content.files, fileBytes: content.fileBytes, requestHash: Array(call.hash))
        let bytes = try ServiceSeal.open(
            .init(encapsulated: content.encapsulated, body: content.body), with: key.key, from: content.sender.key, context)
        return try await files.payload(bytes, number, content)
    }
}
