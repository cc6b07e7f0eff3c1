import CarillonCore
import NIOCore
import ServiceLifecycle

/// Notifies the service manager that the process works, at half of the time limit.
///
/// The process works if each event loop answers, and no commit has taken more than 5 seconds or half of the time limit. A long
/// queue of changes that still progresses is not a reason to end the process.
struct Watchdog: Service {
    let socket: NotifySocket
    /// See ``NotifySocket/watchdog``.
    let time: Duration
    let group: any EventLoopGroup
    let store: any ServerStore

    private var interval: Duration { time / 2 }

    func run() async throws {
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                await processWorks()
                if Task.isCancelled { return }
                await socket.send("WATCHDOG=1")
                try? await Task.sleep(for: interval)
            }
        }
    }

    /// Returns as soon as the process works.
    private func processWorks() async {
        let longest = min(.seconds(5), interval)
        repeat {
            for eventLoop in group.makeIterator() {
                do {
                    try await eventLoop.submit {}.get()
                } catch {
                    // An event loop that has ended does not answer.
                    return await untilCancelled()
                }
            }
            if store.commitTime <= longest { return }
            try? await Task.sleep(for: min(.milliseconds(100), interval))
        } while !Task.isCancelled
    }

    private func untilCancelled() async {
        while !Task.isCancelled { try? await Task.sleep(for: .seconds(60)) }
    }
}
