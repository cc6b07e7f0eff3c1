package import CarillonCore
package import Logging
import Metrics
import Synchronization

/// A log whose messages of level `notice` and above are limited by a ``LogRateLimit``. Messages of lower levels are not limited.
package final class BoundedLog: Sendable {
    private struct State {
        var allowance = LogRateLimit()
        /// The last suppressed message of each key.
        var withheld: [LogRateLimit.Key: LogEvent] = [:]
    }

    private let target: Logger
    private let ticks: TickSource
    private let state = Mutex(State())
    private let withheldLines = ServerMetric.logLinesWithheld.counter()

    /// The metadata keys that identify the subject of a message.
    private static let owners = ["app", "environment", "of", "address", "host"]

    private init(_ target: Logger, ticks: TickSource) {
        self.target = target
        self.ticks = ticks
    }

    /// Returns the bounded log of a logger. If the logger is already bounded, returns the existing one.
    package static func of(_ logger: Logger, ticks: TickSource = .system) -> BoundedLog {
        (logger.handler as? Handler)?.log ?? BoundedLog(logger, ticks: ticks)
    }

    /// A logger that writes through this log.
    package var logger: Logger { Logger(label: target.label, factory: { _ in Handler(log: self, base: target.handler) }) }

    /// Writes the suppressed messages whose minute is over.
    package func flush() {
        let due = state.withLock { state in
            state.allowance.due(at: ticks.now()).compactMap { key, count in
                state.withheld.removeValue(forKey: key).map { ($0, count) }
            }
        }
        for (event, count) in due { target.handler.log(event: Self.counting(event, count)) }
    }

    fileprivate func write(_ event: LogEvent, to base: any LogHandler) {
        guard event.level >= .notice else { return base.log(event: event) }
        let owner = Self.owners.compactMap { name in event.metadata?[name].map { "\(name)=\($0)" } }.joined(separator: " ")
        let count: Int? = state.withLock { state in
            switch state.allowance.decide(.init(text: "\(event.message)", owner: owner), at: ticks.now()) {
            case .write(let key, let withheld):
                state.withheld[key] = nil
                return withheld
            case .withhold(let key):
                state.withheld[key] = event
                return nil
            }
        }
        guard let count else { return withheldLines.increment() }
        base.log(event: Self.counting(event, count))
    }

    private static func counting(_ event: LogEvent, _ withheld: Int) -> LogEvent {
        guard withheld > 0 else { return event }
        var event = event
        event.metadata = (event.metadata ?? [:]).merging(["withheld": "\(withheld)"]) { $1 }
        return event
    }

    fileprivate struct Handler: ForwardingLogHandler {
        let log: BoundedLog
        var base: any LogHandler

        func log(event: LogEvent) { log.write(event, to: base) }
    }
}
