import ArgumentParser
import CarillonAPNs

struct APNsChannelsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "channels", abstract: "Create, list, read and delete broadcast channels for Live Activities.",
        discussion: """
            An app can have up to 10,000 channels in each environment. Send to a channel with `carillon apns send --channel ID`.
            """,
        subcommands: [Create.self, List.self, Read.self, Delete.self])

    struct Create: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Create a channel, and print its ID.")
        @Option(
            help: ArgumentHelp(
                """
                What Apple stores for offline devices: none (broadcasts must expire at once), or latest (the newest \
                broadcast, for up to 8 hours).
                """, valueName: "none|latest"))
        var storage: ChannelStorage
        @OptionGroup var options: ChannelOptions

        func run() async throws {
            try await options.perform { channels in
                let channel = try options.value(try await channels.create(storing: storage.policy))
                options.show(channel, event: "created")
            }
        }
    }

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Print the IDs of all channels.")
        @OptionGroup var options: ChannelOptions

        func run() async throws {
            try await options.perform { channels in
                for id in try options.value(try await channels.list()) {
                    options.printer.print(["channel": .text(id)], otherwise: id)
                }
            }
        }
    }

    struct Read: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Show what Apple stores for a channel.")
        @Argument(help: "The channel's ID, which `create` printed.") var id: String
        @OptionGroup var options: ChannelOptions

        func run() async throws {
            try await options.perform { channels in
                options.show(try options.value(try await channels.read(id)), event: nil)
            }
        }
    }

    struct Delete: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Delete a channel. Its listeners receive nothing more.")
        @Argument(help: "The channel's ID.") var id: String
        @OptionGroup var options: ChannelOptions

        func run() async throws {
            try await options.perform { channels in
                _ = try options.value(try await channels.delete(id))
                options.printer.print(["event": "deleted", "channel": .text(id)], otherwise: "deleted channel \(id)")
            }
        }
    }
}

/// The storage policy of a channel, in the names of the command's option.
enum ChannelStorage: String, ExpressibleByArgument, CaseIterable {
    case none, latest

    var policy: APNsChannels.Storage {
        switch self {
        case .none: .nothing
        case .latest: .mostRecent
        }
    }

    init(_ policy: APNsChannels.Storage) {
        switch policy {
        case .nothing: self = .none
        case .mostRecent: self = .latest
        }
    }
}
