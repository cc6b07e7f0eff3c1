import APNsFigures
import ArgumentParser
import Foundation

/// A process that only sends with CarillonAPNs, so that its CPU time and memory are those of the library and its caller.
/// `carillon-bench` starts it.
@main
struct APNsLoad: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "apns-load",
        abstract: "Send pushes to a simulator, and print one line of figures as JSON.",
        subcommands: [PushCommand.self, StallCommand.self, CrowdCommand.self])

    static func say(_ figures: some Encodable) throws {
        print(String(decoding: try JSONEncoder().encode(figures), as: UTF8.self))
    }
}
