import ArgumentParser
import Dispatch
import Foundation
import ServiceLifecycle
import Synchronization
import UnixSignals

/// Handles Ctrl-C for a command without pending work: prints a sentence, and ends with the exit code that shells expect.
///
/// The process ends immediately. Requests to a store or a server are either done completely or not at all.
final class Interruption {
    private let source: any DispatchSourceSignal

    /// - Parameter cleanUp: Removes incomplete results.
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

/// Ends a group of services at Ctrl-C, and records that it did.
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

    /// After Ctrl-C, prints the sentence and ends the command with its exit code.
    func report(_ sentence: String) throws {
        guard isInterrupted.load(ordering: .relaxed) else { return }
        StandardError.print("carillon: \(sentence)")
        throw ExitStatus.interrupted
    }
}
