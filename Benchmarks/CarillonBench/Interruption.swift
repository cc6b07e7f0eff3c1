import Dispatch
import Foundation

/// Ends all servers after Ctrl-C and SIGTERM.
enum Interruption {
    static func watch(_ scratch: ScratchDirectory) -> [any DispatchSourceSignal] {
        [SIGINT, SIGTERM].map { number in
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number)
            source.setEventHandler {
                Running.killAll()
                scratch.removeAll()
                exit(128 + number)
            }
            source.resume()
            return source
        }
    }
}
