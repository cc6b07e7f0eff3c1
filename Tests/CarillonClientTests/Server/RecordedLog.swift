import Logging
import Synchronization

/// Keeps what is logged, a line for each event: level, message and metadata in the order of their names.
struct RecordedLog: LogHandler {
    final class Lines: Sendable {
        private let all = Mutex<[String]>([])

        var warnings: [String] { all.withLock { $0.filter { $0.hasPrefix("warning ") } } }
        func add(_ line: String) { all.withLock { $0.append(line) } }

        var logger: Logger {
            var logger = Logger(label: "test", factory: { _ in RecordedLog(lines: self) })
            logger.logLevel = .trace
            return logger
        }
    }

    let lines: Lines
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.trace

    init(lines: Lines) { self.lines = lines }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        let values = (event.metadata ?? [:]).sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
        lines.add((["\(event.level)", event.message.description] + values).joined(separator: " "))
    }
}
