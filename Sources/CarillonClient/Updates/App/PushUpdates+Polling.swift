import CarillonBasics
import CarillonWire
import Synchronization

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The polling of the server, repeatedly or once.
extension PushUpdates {
    private enum Polled {
        case page(UpdatePoller.Page)
        case failed(retryAfter: Duration?)
        case hinted
    }

    func pollLoop(_ poller: UpdatePoller, _ worker: UpdateWorker, _ polling: Settings.Polling) async {
        var schedule = ClientReconnectSchedule(api.backOff)
        while !Task.isCancelled {
            let began = ContinuousClock.now
            let pause: Duration
            switch await poll(poller, worker, wait: isInForeground ? polling.waitSeconds : 0) {
            case .hinted: continue
            case .failed(let retryAfter):
                // A hint does not shorten this wait, which the server may have requested.
                try? await Task.sleep(for: schedule.failed(hint: retryAfter, random: .random(in: 0..<1)))
                pause = .zero
            case .page(let page):
                schedule.succeeded()
                if let retryAfter = page.retryAfter { try? await Task.sleep(for: retryAfter * Double.random(in: 1...1.2)) }
                if page.more || page.hasLostParameters { continue }
                pause = polling.pause(after: began.duration(to: .now))
            }
            await waitForHint(atMost: pause)
        }
    }

    private func waitForHint(atMost pause: Duration) async {
        await withTaskGroup { group in
            if state.withLock({ $0.isInForeground }) { group.addTask { try? await Task.sleep(for: pause) } }
            group.addTask { await self.hints.wait() }
            await group.next()
            group.cancelAll()
        }
    }

    private func poll(_ poller: UpdatePoller, _ worker: UpdateWorker, wait: Int) async -> Polled {
        let parameters = await parameters()
        do throws(PollFault) {
            guard let page = try await poller.poll(wait: wait, parameters: parameters, hints: hints) else { return .hinted }
            await worker.arrived(page.arrival)
            return .page(page)
        } catch {
            switch error {
            case .positionRefused:
                await storing(worker) { try await inbox.clearPosition() }
                return .failed(retryAfter: nil)
            case .failed(let failure, let retryAfter):
                if Task.isCancelled { return .hinted }
                if failure.kind == .parametersRefused, let revision = parameters?.revision {
                    state.withLock { $0.refused = (revision, .now) }
                }
                await worker.failed(failure)
                return .failed(retryAfter: retryAfter)
            }
        }
    }

    /// Returns the present parameters; nil if the server refused them less than ``refusedFor`` ago.
    private func parameters() async -> ParameterSet? {
        let (ask, refused) = state.withLock { ($0.parameters, $0.refused) }
        let present = ParameterSet(await ask(), at: Date().milliseconds)
        guard let refused, refused.revision == present.revision else { return present }
        return refused.at.duration(to: .now) < refusedFor ? nil : present
    }

    func pollOnce() async -> PushWakeResult {
        // A run beside this poll may have received updates already. They count as well.
        let earlier = state.withLock { $0.worker }
        let received = await earlier?.received ?? 0
        guard let (worker, work) = await begun() else { return .failed }
        let (poller, before) = (poller(work), worker === earlier ? received : 0)
        while true {
            guard case .page(let page) = await poll(poller, worker, wait: 0) else { return .failed }
            if !page.more, !page.hasLostParameters { break }
        }
        await awaitProcessing()
        guard case .page = await poll(poller, worker, wait: 0) else { return .failed }
        return await worker.received > before ? .newData : .noData
    }

    /// Waits for the worker that processes updates. Returns nil if no updates are processed.
    private func begun() async -> (UpdateWorker, Work)? {
        while !Task.isCancelled {
            guard let work = present else { return nil }
            if let worker = state.withLock({ $0.worker }) { return (worker, work) }
            try? await Task.sleep(for: .milliseconds(10))
        }
        return nil
    }

    private func awaitProcessing() async {
        while !Task.isCancelled, (try? await inbox.isAllProcessed()) == false {
            try? await Task.sleep(for: .milliseconds(20))
        }
    }
}

extension PushUpdates.Settings.Polling {
    /// How long the server may wait before it responds.
    fileprivate var waitSeconds: Int {
        guard case .long(let duration) = self else { return 0 }
        let seconds = Double(duration.components.seconds) * Double.random(in: 0.9...1)
        return min(max(1, Int(seconds)), Limits.pollWaitSeconds)
    }

    /// Returns the pause before the next poll, after a response that took the given time.
    fileprivate func pause(after answer: Duration) -> Duration {
        switch self {
        // A server that does not wait is polled at most once a second.
        case .long: max(.zero, .seconds(1) - answer)
        case .every(let interval): max(interval, .seconds(1)) * Double.random(in: 0.9...1.1)
        }
    }
}
