import CarillonBasics
import CarillonMessages
import CarillonWire
import Logging
import Synchronization

/// Performs the actions of a step after its changes are stored.
extension SessionRunner {
    /// Sends a frame on the live connection, without a wait for the steps before.
    func send(_ frame: ClientFrame) {
        current.withLock { session in
            guard session.phase == .live else { return }
            connection.withLock { $0 }?.send(frame.text)
        }
    }

    func notify(_ fact: SubscriptionFact) {
        switch fact {
        case .connected(let version, let isRestored):
            subscriptions.connected(version: version, isRestored: isRestored)
        case .paused:
            requester.disconnected()
            subscriptions.disconnected()
        case .disconnected:
            requester.disconnected()
            firings.disconnected()
            subscriptions.disconnected()
        case .signedOut:
            requester.disconnected()
            firings.ownerChanged()
            deviceListeners.ownerChanged()
            subscriptions.signedOut()
        case .userChanged:
            firings.ownerChanged()
            deviceListeners.ownerChanged()
        case .deviceLost:
            requester.disconnected()
            deviceListeners.ownerChanged()
            subscriptions.deviceLost()
        case .answered(let answer): subscriptions.answered(answer)
        case .fired(let firing, let starts):
            guard firings.add(firing, starts: starts) else { return }
            catchUps.received()
            // The server sends a firing on each connection until the app has handled it.
            guard let entry = firings.notifies(firing, starts: starts) else { return }
            subscriptions.fired(firing.subscriptionID, at: firing.milliseconds, start: delegateStart(of: entry))
        }
    }

    func carryOut(_ action: SessionAction) {
        switch action {
        case .write(.saveChannel(let identifier, let channel)):
            shareKeys()
            channels.withLock { $0.post(channel, of: identifier) }
        case .write(.removeChannel(let identifier)):
            shareKeys()
            channels.withLock { $0.post(ChannelMachine(), of: identifier) }
        case .write: break
        case .send(let frame): connection.withLock { $0 }?.send(frame.text)
        case .closeSocket(let code): connection.withLock { $0 }?.close(code: code)
        case .deliver(let action, let identifier): readQueue(of: identifier).append(action)
        case .deliverMessage(let message, let identifier):
            catchUps.received()
            readQueue(of: identifier).append(message)
        case .dropMessages(let identifier): readQueue(of: identifier).removeMessages()
        case .notifyAvailability(let present):
            if present.service { failures.connected() }
            availability.post(present)
        case .deliverToken(let address, let identifier): deliver(address, of: identifier)
        case .noteUndecryptable(let id, let identifier, let fault):
            logger.warning(
                "A message could not be decrypted",
                metadata: ["id": "\(id)", "channel": "\(identifier)", "reason": "\(fault.rawValue)"])
        case .checkForReader(let identifier, let waiting):
            guard channels.withLock({ $0.warns(of: identifier) }) else { break }
            logger.warning(
                "Nobody reads the events of a channel; iterate them, or disconnect or discard the channel",
                metadata: ["channel": "\(identifier)", "waiting": "\(waiting)"])
        case .noteFullBuffer(let identifier, let waiting):
            let fault = PushError(
                .bufferFull,
                "The buffer of the channel \"\(identifier)\" is full with \(waiting) messages that the app has not handled; what comes for it is refused."
            )
            failures.note(fault)
            logger.warning(
                "A channel's buffer is full, and messages for it are refused",
                metadata: ["channel": "\(identifier)", "waiting": "\(waiting)"])
        case .noteCrashingFiring(let firing, let starts): noteCrashing(firing, starts: starts)
        case .noteFailure(let code, let message):
            failures.obstructed(PushError(code, message))
        case .reportDevice(let report, let identity): self.report(report, identity)
        case .reportUser(let userChange, let identity): report(userChange, identity)
        case .deregister(let deregistration): deregister(deregistration)
        case .notifyDevice(let events): deviceListeners.notify(events)
        case .notifySubscriptions(let fact): notify(fact)
        case .notifyServices:
            catchUps.received()
            wakeServices()
        case .notifyProviders: providerChanges.send()
        case .notifyServicesRevision(let revision, let isRestored):
            listeners.withLock { $0.servicesRevisionReported }?(revision, isRestored)
        case .openRequests: requester.connected()
        case .notifyRequests(let answer): requester.answered(answer)
        case .markInstall(let device): markInstall(device)
        case .noteCaughtUp:
            catchUps.caughtUp()
            // The providers may have changed while there was no connection.
            providerChanges.send()
        case .wake: wakes.send()
        }
    }

    func markInstall(_ device: String) {
        do {
            try store.marker.put(for: device)
        } catch {
            // Without the mark, the next process assumes that the storage was restored from a backup.
            logger.warning("cannot mark the install; retrying", metadata: ["reason": "\(error)"])
            again { runner in
                if runner.session.registration.identity?.device == device { runner.markInstall(device) }
            }
        }
    }
}
