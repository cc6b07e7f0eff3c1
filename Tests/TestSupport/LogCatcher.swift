package import Logging
import Synchronization

/// Keeps the lines that a logger writes: the level, the text and all values.
package final class LogCatcher: Sendable {
    private let caught = Mutex<[String]>([])

    package init() {}

    package var lines: [String] { caught.withLock { $0 } }
    package var warnings: [String] { lines.filter { $0.hasPrefix("warning ") } }
    package var text: String { lines.joined(separator: "\n") }
    package var logger: Logger { Logger(label: "test", factory: { _ in Handler(catcher: self) }) }

    private struct Handler: LogHandler {
        let catcher: LogCatcher
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.trace

        init(catcher: LogCatcher) { self.catcher = catcher }

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            let values = metadata.merging(event.metadata ?? [:]) { $1 }.sorted { $0.key < $1.key }
            let line = "\(event.level) \(event.message)" + values.map { " \($0.key)=\($0.value)" }.joined()
            catcher.caught.withLock { $0.append(line) }
        }
    }
}
