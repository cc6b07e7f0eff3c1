import CarillonServer
import NIOCore

/// A fault of the operating system that has a sentence for the operator.
protocol IOErrorDescribing: Error {
    func sentence(for settings: ServerSettings) -> String
}

extension IOError: IOErrorDescribing {
    func sentence(for settings: ServerSettings) -> String {
        "cannot listen on \(settings.listenAddress): \(description). Is another server running there?"
    }
}
