import ArgumentParser
import CarillonAPNs
import Foundation
import Synchronization
import UnixSignals

/// Sends one notification to many push tokens, until all are answered or the user stops the command.
///
/// The first Ctrl-C stops new pushes and waits for pending ones. The second one abandons the pending pushes.
final class PushRun: Sendable {
    private struct State {
        var tally = SendTally()
        var end = SendSummary.End.done
    }

    private enum Event {
        case signalled
        case drawn
        case sent(CommandFault?)
    }

    /// The number of pushes that can lose their connections before the first answer. The first one can have used an old
    /// connection that was closed.
    static let firstConnections = 3

    private let client: APNsClient
    private let notification: APNsNotification
    private let feed: TokenFeed
    private let printer: Printer
    private let state = Mutex(State())

    init(client: APNsClient, notification: APNsNotification, feed: TokenFeed, printer: Printer) {
        self.client = client
        self.notification = notification
        self.feed = feed
        self.printer = printer
    }

    /// - Throws: ``CommandFault`` if the token file cannot be read to its end. Pushes that were already sent are reported.
    func run() async throws -> ExitCode {
        let signals = await UnixSignalsSequence(trapping: .sigint, .sigterm)
        let began = ContinuousClock.now
        let fault = await withTaskGroup(of: Event.self) { group in
            group.addTask {
                await self.obey(signals)
                return .signalled
            }
            if feed.isFile, !printer.isJSON, ProgressDisplay.isPossible {
                group.addTask {
                    await self.showProgress()
                    return .drawn
                }
            }
            group.addTask { .sent(await self.send()) }
            var fault: CommandFault?
            for await event in group {
                switch event {
                case .signalled: group.cancelAll()
                case .drawn: break
                case .sent(let end):
                    fault = end
                    group.cancelAll()
                }
            }
            return fault
        }
        if fault != nil { state.withLock { $0.end = .unreadableFile } }
        let (tally, end) = state.withLock { ($0.tally, $0.end) }
        let summary = SendSummary(tally: tally, duration: .now - began, end: end, repeated: feed.repeated)
        // A file that cannot be read is not reported as empty.
        let isEmptyHanded = fault != nil && tally.settled == 0
        if printer.isJSON || (feed.count != 1 && !isEmptyHanded) {
            printer.print(summary.values, lines: summary.lines)
        }
        if let fault { throw fault }
        return end == .interrupted ? ExitStatus.interrupted : tally.exitStatus
    }

    private func send() async -> CommandFault? {
        let results: APNsAsyncResults<TokenFeed>
        do {
            results = try client.send(notification, to: feed)
        } catch {
            return CommandFault(error)
        }
        do {
            for try await result in results {
                report(result)
                follow(result)
            }
            return nil
        } catch {
            return error
        }
    }

    private func report(_ result: APNsResult<TokenLine>) {
        let report = PushReport(recipient: .token(result.recipient), result: result.result)
        if printer.isJSON || !feed.isFile {
            let name = feed.count == 1 ? "" : "\(result.recipient.deviceToken)  "
            printer.print(report.values, otherwise: name + report.sentence)
        }
    }

    /// Decides whether to continue after a result.
    private func follow(_ result: APNsResult<TokenLine>) {
        let (end, isUnanswered) = state.withLock { state -> (SendSummary.End, Bool) in
            let isFirstWord = state.tally.answered == 0
            state.tally.add(result.result, line: result.recipient.line, bytes: result.recipient.bytes)
            guard state.end == .done else { return (state.end, true) }
            // If two windows of pushes have no answer, the remaining ones would have none either.
            let patience =
                !isFirstWord
                ? 2 * client.configuration.batchWindow
                : result.error?.code == .connectionLost ? Self.firstConnections : 1
            if let rejection = result.rejection, rejection.concernsAll || (isFirstWord && rejection.reason == nil) {
                state.end = .refusedForAll
            } else if state.tally.unanswered >= patience {
                state.end = .noService
            }
            return (state.end, state.tally.answered == 0)
        }
        if end != .done {
            // If no token is left, none was held back.
            if feed.isExhausted { state.withLock { $0.end = $0.end == .interrupted ? .interrupted : .done } }
            feed.stop()
        } else if let code = result.error?.code, code == .tokenInvalid || isUnanswered {
            // The state of the service is not known yet.
            feed.proceed()
        } else {
            feed.open()
        }
    }

    /// Returns at the second signal, or when the task is cancelled because all pushes were sent.
    private func obey(_ signals: UnixSignalsSequence) async {
        var isStopping = false
        for await _ in signals {
            // If all tokens were already returned, the first signal holds none back.
            if isStopping || !feed.isExhausted { state.withLock { $0.end = .interrupted } }
            if isStopping {
                // A third signal ends the process at once.
                signal(SIGINT, SIG_DFL)
                return
            }
            isStopping = true
            feed.stop()
            if isatty(STDERR_FILENO) == 1 { StandardError.clearLine() }
            StandardError.print(
                "carillon: stopping; waiting for the answers to sent pushes. Press Ctrl-C again to stop at once.")
        }
    }

    private func showProgress() async {
        var display = ProgressDisplay()
        while !Task.isCancelled {
            display.draw(state.withLock { $0.tally }, of: feed.size, at: .now)
            do {
                try await Task.sleep(for: ProgressDisplay.interval)
            } catch {
                break
            }
        }
        display.clear()
    }
}
