import CarillonCore
import CarillonWire
import Logging
import ServiceLifecycle

/// Makes the calls to backends that are due.
final class WatchRunner: Service {
    private let work: LeasedWork<WatchWork>
    private let caller: OutwardCaller
    private let time: TimeSource
    private let logger: Logger

    init(domain: HomeDomain, caller: OutwardCaller, logger: Logger) {
        work = domain.work
        time = domain.time
        self.caller = caller
        self.logger = logger
    }

    func run() async throws {
        await cancelWhenGracefulShutdown {
            await self.begin()
            await withDiscardingTaskGroup { group in
                let (looks, look) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
                group.addTask {
                    while !Task.isCancelled {
                        look.yield()
                        try? await Task.sleep(for: self.work.underWay > 0 ? .milliseconds(100) : .milliseconds(500))
                    }
                    look.finish()
                }
                for await _ in looks {
                    for call in await self.takeDue() {
                        group.addTask {
                            await self.make(call)
                            look.yield()
                        }
                    }
                }
            }
        }
    }

    private func begin() async {
        do {
            try await work.begin()
        } catch {
            logger.error("cannot spread overdue pings; sending them at once", metadata: ["reason": "\(error)"])
        }
    }

    private func takeDue() async -> [LeasedWork<WatchWork>.Begun] {
        guard !Task.isCancelled else { return [] }
        do {
            return try await work.due()
        } catch {
            if Task.isCancelled { return [] }
            logger.error("cannot read due calls to backends; retrying", metadata: ["reason": "\(error)"])
            return []
        }
    }

    private func make(_ call: LeasedWork<WatchWork>.Begun) async {
        let result = await caller.call(request(call.job))
        do {
            try await work.ended(call, result)
        } catch {
            // It is tried again before any other call is begun.
            logger.error("cannot store the result of a call to a backend; retrying", metadata: ["reason": "\(error)"])
        }
        if case .notMade(let reason) = result {
            logger.warning("cannot call a backend", metadata: ["reason": "\(reason)"])
        }
    }

    private func request(_ call: BackendCall) -> OutwardCaller.Request {
        let now = time.now()
        let body = Self.body(of: call, at: now)
        return OutwardCaller.Request(
            address: call.address,
            headers: [
                (WebhookHeaders.id, call.id),
                (WebhookHeaders.timestamp, String(now.seconds)),
                (WebhookHeaders.signature, call.secret.signature(id: call.id, seconds: now.seconds, body: body)),
            ],
            body: body)
    }

    private static func body(of call: BackendCall, at now: Timestamp) -> [UInt8] {
        let body =
            switch call.content {
            case .ping:
                WebhookBody(
                    type: WebhookBody.ping, timestamp: Timestamp3339.text(now.milliseconds),
                    data: .init(token: call.token))
            case .disconnected(let reason, let at):
                WebhookBody(
                    type: WebhookBody.disconnected, timestamp: Timestamp3339.text(at.milliseconds),
                    data: .init(token: call.token, reason: reason.rawValue))
            }
        return body.bytes
    }
}
