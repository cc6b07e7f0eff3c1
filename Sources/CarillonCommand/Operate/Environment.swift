import Foundation

/// The process's environment.
enum Environment {
    static var all: [String: String] { ProcessInfo.processInfo.environment }

    static subscript(name: String) -> String? { all[name] }
}
