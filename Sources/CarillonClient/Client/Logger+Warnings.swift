import Logging

extension Logger {
    /// Returns a logger of the process's logging system that writes warnings and errors.
    static func forWarnings(_ label: String) -> Logger {
        var logger = Logger(label: label)
        logger.logLevel = .warning
        return logger
    }
}
