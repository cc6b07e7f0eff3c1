import CarillonCore
import CarillonWire
import Logging
import ServiceLifecycle

/// Sends the pushes that are due.
struct PushRunner: Service {
    let outbox: Outbox
    let gateways: Gateways
    let logger: Logger

    /// The longest wait for answers when the server stops. Pushes without an answer are sent again after the next start.
    private static let patience: Duration = .seconds(5)
    private static let checkInterval: Duration = .milliseconds(100)

    func run() async throws {
        await withDiscardingTaskGroup { group in
            await begin()
            // The limit of pushes without an answer also limits this buffer.
            let (rounds, give) = AsyncStream.makeStream(of: [LeasedPush].self)
            group.addTask {
                await cancelWhenGracefulShutdown {
                    while !Task.isCancelled {
                        let due = await look()
                        if !due.pushes.isEmpty { give.yield(due.pushes) }
                        if !due.areMoreDue { try? await Task.sleep(for: Self.checkInterval) }
                    }
                }
                give.finish()
            }
            for await round in rounds {
                for push in round { group.addTask { await send(push) } }
            }
            await awaitAnswers()
            group.cancelAll()
        }
        await gateways.close(for: outbox)
    }

    /// Repeats the start until it succeeds, because a fault of the store can be temporary, and without the push credentials no
    /// push could be sent.
    private func begin() async {
        while !Task.isCancelled, !Task.isShuttingDownGracefully {
            do {
                try await gateways.open(for: outbox)
                return try await outbox.begin()
            } catch {
                logger.error("cannot start sending pushes; retrying", metadata: ["reason": "\(error)"])
                try? await Task.sleep(for: .seconds(1))
            }
        }
    }

    private func look() async -> LeasedPushes {
        do {
            return try await outbox.due(gateways.isConfigured)
        } catch {
            if !Task.isCancelled { logger.error("cannot read due pushes; retrying", metadata: ["reason": "\(error)"]) }
            return LeasedPushes()
        }
    }

    private func send(_ push: LeasedPush) async {
        let answer = await gateways.gateway(push.queue)?.send(push) ?? .notSent
        let hasOther = push.queue.other.map(gateways.isConfigured) ?? false
        let queue: Logger.Metadata = [
            "app": "\(gateways.name(of: push.queue.app))", "environment": "\(push.queue.environment)",
        ]
        switch await outbox.ended(push, answer, hasOther: hasOther) {
        case .paused(let fault):
            logger.error("pausing the push queue of an app", metadata: queue.merging(["reason": "\(fault.reason)"]) { $1 })
        case .opened:
            logger.notice("resuming the push queue of an app", metadata: queue)
        case nil:
            break
        }
    }

    private func awaitAnswers() async {
        let deadline = ContinuousClock.now + Self.patience
        while outbox.underWay > 0, ContinuousClock.now < deadline { try? await Task.sleep(for: .milliseconds(20)) }
    }
}
