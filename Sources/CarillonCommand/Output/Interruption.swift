import ArgumentParser
import Dispatch
import Foundation
import ServiceLifecycle
import Synchronization
import UnixSignals

/// What Ctrl-C does to a command that has nothing to finish: a sentence, and the exit code that shells know.
///
/// The process ends there and then: what a store or a server was asked for is done as a whole or not at all.
final class Interruption {
    private let source: any DispatchSourceSignal

    /// - Parameter cleanUp: Removes what would be left half done.
    init(_ sentence: String, cleanUp: @escaping @Sendable () -> Void) {
        signal(SIGINT, SIG_IGN)
        source = DispatchSource.makeSignalSource(signal: SIGINT, queue: .global())
        source.setEventHandler {
            cleanUp()
            StandardError.print("carillon: \(sentence)")
            _exit(ExitStatus.interrupted.rawValue)
        }
        source.resume()
    }

    func end() { source.cancel() }
}

/// Ends a group of services at Ctrl-C, and knows afterwards that it did.
final class InterruptService: Service {
    private let isInterrupted = Atomic<Bool>(false)

    func run() async throws {
        await cancelWhenGracefulShutdown {
            for await _ in await UnixSignalsSequence(trapping: .sigint) {
                self.isInterrupted.store(true, ordering: .relaxed)
                return
            }
        }
    }

    /// Says the sentence when Ctrl-C it was, and ends the command with its exit code.
    func report(_ sentence: String) throws {
        guard isInterrupted.load(ordering: .relaxed) else { return }
        StandardError.print("carillon: \(sentence)")
        throw ExitStatus.interrupted
    }
}
