package import Logging

/// A log handler that stores its metadata and its level in another one.
package protocol ForwardingLogHandler: LogHandler {
    var base: any LogHandler { get set }
}

extension ForwardingLogHandler {
    package var metadata: Logger.Metadata {
        get { base.metadata }
        set { base.metadata = newValue }
    }

    package var logLevel: Logger.Level {
        get { base.logLevel }
        set { base.logLevel = newValue }
    }

    package subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { base[metadataKey: key] }
        set { base[metadataKey: key] = newValue }
    }
}
