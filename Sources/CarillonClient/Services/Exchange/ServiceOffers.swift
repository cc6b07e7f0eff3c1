import CarillonBasics
import CarillonWire
import Logging
import Synchronization

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Sends the app's offer to the server, and sends it again if the server lost it.
final class ServiceOffers: Sendable {
    private struct SentOffer {
        var offer: ServiceOffering?
        var device: String
        var user: String?
        var key: String
        /// The revision of the offer on the server; nil if the server rejected the offer, or stores no revisions.
        var revision: String?
        /// Whether the server does not have the offer any more.
        var isLost = false

        func isSame(as other: SentOffer) -> Bool {
            offer == other.offer && device == other.device && user == other.user && key == other.key
        }
    }

    private struct State {
        /// The app's offer; nil if the app offers nothing.
        var offer: ServiceOffering?
        /// The offer that was sent to the server last in this run.
        var sent: SentOffer?

        /// Whether the server has, or must have, an offer.
        var hasOffer: Bool { offer != nil || sent?.offer != nil || sent?.isLost == true }
    }

    private let runner: SessionRunner
    private let box: ServiceBox
    private let server: ServiceAPI
    private let listeners: ServiceProviderListeners
    private let logger: Logger
    private let state = Mutex(State())
    private let changes = Signal()

    init(
        runner: SessionRunner, box: ServiceBox, server: ServiceAPI, listeners: ServiceProviderListeners, logger: Logger
    ) {
        self.runner = runner
        self.box = box
        self.server = server
        self.listeners = listeners
        self.logger = logger
    }

    func set(_ offer: ServiceOffering?) {
        state.withLock { $0.offer = offer }
        changes.send()
    }

    /// Called when the device or its user may have changed.
    func scopeChanged() { changes.send() }

    /// Sends the offer after each change of the offer, of the device, of its user and of its key.
    func run() async {
        // Each run sends the offer once.
        state.withLock { $0.sent = nil }
        var schedule = ClientReconnectSchedule(server.api.backOff)
        while !Task.isCancelled {
            let scope = runner.session.updateScope
            guard let device = scope.identity?.device, !scope.isUserPending, state.withLock(\.hasOffer) else {
                await changes.wait()
                continue
            }
            do {
                let keys = try await box.keys(at: ServiceEngine.now)
                let (present, sent) = state.withLock { ($0.offer, $0.sent) }
                var sending = SentOffer(offer: present, device: device, user: scope.user, key: keys.key.name)
                if let sent, sent.isSame(as: sending), !sent.isLost {
                    await wait(until: keys.key.validUntil)
                    continue
                }
                let answer: ServiceAPI.Answer
                // An offer that is lost while it is being sent is sent again.
                state.withLock { $0.sent?.isLost = false }
                if let present {
                    let (body, revision) = present.body(
                        keys: try keys.bundle(of: device), isNamed: runner.session.namesRevisions)
                    sending.revision = revision
                    answer = await server.send(.put, "/v1/device/services", body)
                } else {
                    answer = await server.send(.delete, "/v1/device/services")
                }
                switch answer {
                case .done:
                    let now = sending
                    state.withLock { state in
                        let isLost = state.sent?.isLost ?? false
                        state.sent = now
                        state.sent?.isLost = isLost
                    }
                    schedule.succeeded()
                    continue
                case .refused(let error):
                    logger.error("server refused offered services", metadata: ["reason": "\(error)"])
                    if present != nil { listeners.notify([.offerRefused(error)]) }
                    sending.revision = nil
                    let now = sending
                    state.withLock { $0.sent = now }
                    continue
                case .later(let hint): try await server.api.wait(&schedule, hint: hint)
                }
            } catch is CancellationError {
                return
            } catch {
                logger.error("cannot read keys of services; retrying", metadata: ["reason": "\(error)"])
                // If the task is cancelled, the loop ends.
                try? await box.store.health.wait(atMost: schedule.storageFailed())
            }
        }
    }

    /// The server reports the revision of its offer at the beginning of a connection.
    func serverHas(_ revision: String?, isRestored: Bool) {
        let isLost = state.withLock { state in
            guard let sent = state.sent else { return false }
            // The server has an offer that was withdrawn, or does not have the present one.
            let isOther = sent.offer == nil ? revision != nil : sent.revision != nil && sent.revision != revision
            guard isOther || isRestored && sent.offer != nil else { return false }
            state.sent?.isLost = true
            return true
        }
        if isLost { changes.send() }
    }

    private func wait(until moment: Int64) async {
        let timer = Task { [changes] in
            try await Task.sleep(for: .milliseconds(max(1000, moment - ServiceEngine.now)))
            changes.send()
        }
        await changes.wait()
        timer.cancel()
    }
}
