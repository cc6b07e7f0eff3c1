import CarillonBasics
import CarillonWire
import Logging

/// The handling of the events of services from the server or another app, in their order.
extension ServiceEngine {
    func runEvents() async {
        var place: Int64 = 0
        await withDiscardingTaskGroup { group in
            while !Task.isCancelled {
                // The app set another user: stored events are not reported to that user.
                guard !isBetweenUsers else {
                    await runner.serviceChanges.wait()
                    continue
                }
                await notifyDeferredResults()
                do {
                    let arrivals = activity.arrivals
                    let (events, repeated, last) = try await storage.storing {
                        try await box.events(after: place, at: Self.now, limit: Self.eventsAtOnce)
                    }
                    if repeated > 0 {
                        logger.warning("received requests again", metadata: ["count": "\(repeated)"])
                    }
                    for event in events {
                        activity.began()
                        if await handleIfShort(event) {
                            activity.ended(isEvent: true)
                            continue
                        }
                        group.addTask {
                            await self.handleEvent(event)
                            self.activity.ended(isEvent: true)
                        }
                    }
                    if let last {
                        place = last
                        continue
                    }
                    activity.read(upTo: arrivals)
                } catch {
                    if Task.isCancelled { break }
                    logger.error("cannot read received requests", metadata: ["reason": "\(error)"])
                }
                await runner.serviceChanges.wait()
            }
            group.cancelAll()
        }
    }

    /// Handles an event in its order, if this takes a short time. Returns false for an event that takes longer.
    private func handleIfShort(_ stored: StoredServiceEvent) async -> Bool {
        switch stored.event {
        // The end of a request can wait for the storage.
        case .reply, .failed: return false
        case .request(let header, _, _, _):
            incoming.began(header.id.description, stored)
            return false
        case .cancelled(let id):
            await cancelled(id.description)
            await deleteEvent(stored)
        case .received(let id):
            await notifyReceived(id.description, stored.number)
        }
        return true
    }

    private func handleEvent(_ stored: StoredServiceEvent) async {
        switch stored.event {
        case .request(let header, let from, let expiresAt, let content):
            await handleRequest(stored, header, from, expiresAt, content)
        case .reply(let id, let from, let content): await handleReply(stored, id.description, from, content)
        case .failed(let id, let code):
            await finish(id.description, .failure(ServiceError(.init(code), "The server ended the request.")), stored)
        case .cancelled, .received: break
        }
    }

    func deleteEvent(_ stored: StoredServiceEvent) async {
        await storage.change("forget event") { [box] in try await box.done(stored.number) }
    }
}
