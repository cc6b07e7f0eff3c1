import ArgumentParser
import CarillonCore
import CarillonServer
import CarillonWire
import NIOHTTP1

struct DevicesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "devices", abstract: "List, show, suspend, resume and delete devices.",
        subcommands: [List.self, Show.self, Suspend.self, Resume.self, Delete.self])

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List the devices of an app, in the order of their registration.",
            discussion: "A page ends with the ID after which the next page begins: name it with --after.")
        @Argument(help: "The app.") var app: String
        @Option(help: "Only devices with this status: registered or suspended.") var status: String?
        @Option(help: "Only devices of this platform: apple, or none for devices without a push token.") var platform:
            String?
        @Option(help: "Only devices of this user.") var user: String?
        @Option(help: "Only devices after this device.") var after: String?
        @Option(help: "The number of devices, from 1 to 1000.") var limit = 100
        @OptionGroup var options: OperatorOptions

        func run() async throws {
            try await options.perform { domain in
                show(
                    try await domain.listDevices(
                        of: try AppID.checked(app),
                        try DeviceFilter(status: status, platform: platform, user: user),
                        after: try after.map(DeviceID.checked), limit: min(max(1, limit), 1000)))
            } onServer: { client in
                var path = "/v1/apps/\(app)/devices?limit=\(limit)"
                for (name, value) in [("status", status), ("platform", platform), ("user", user), ("after", after)] {
                    if let value { path += "&\(name)=\(APIClient.inQuery(value))" }
                }
                show(try await client.call(.GET, path, as: DeviceList.self))
            }
        }

        private func show(_ list: DeviceList) {
            for device in list.devices {
                options.printer.print(
                    [
                        "id": .text(device.id), "app": .text(device.app), "createdAt": .text(device.createdAt),
                        "status": .text(device.status), "reason": device.reason.map(OutputValue.text),
                        "platform": device.platform.map(OutputValue.text),
                        "environment": device.environment.map(OutputValue.text), "user": device.user.map(OutputValue.text),
                    ],
                    words: [
                        device.id, device.status, device.reason, device.platform, device.environment, device.user,
                        "since \(device.createdAt)",
                    ])
            }
            guard let next = list.next else { return }
            options.printer.print(["event": "more", "after": .text(next)], otherwise: "more: --after \(next)")
        }
    }

    struct Show: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Show a device.")
        @Argument(help: "The device's ID.") var id: String
        @OptionGroup var options: OperatorOptions

        func run() async throws {
            try await options.perform { domain in
                options.show(try await domain.describe(try await domain.devices.find(try DeviceID.checked(id))), event: nil)
            } onServer: { client in
                options.show(try await client.call(.GET, "/v1/devices/\(id)", as: DeviceBody.self), event: nil)
            }
        }
    }

    struct Suspend: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Stop pushes to a device through its vendor's service, until it is resumed.",
            discussion: "Live connections and polls keep working; waiting messages stay.")
        @Argument(help: "The device's ID.") var id: String
        @OptionGroup var options: OperatorOptions

        func run() async throws {
            try await options.perform { domain in
                let device = try await domain.devices.find(try DeviceID.checked(id))
                _ = try await domain.devices.suspend(device)
                options.show(try await domain.describe(device), event: "suspended")
            } onServer: { client in
                let path = "/v1/devices/\(id)/suspend"
                options.show(try await client.call(.POST, path, as: DeviceBody.self), event: "suspended")
            }
        }
    }

    struct Resume: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Start pushes to a suspended device again, whatever the reason of the suspension.")
        @Argument(help: "The device's ID.") var id: String
        @OptionGroup var options: OperatorOptions

        func run() async throws {
            try await options.perform { domain in
                let device = try await domain.devices.find(try DeviceID.checked(id))
                _ = try await domain.devices.resume(device)
                options.show(try await domain.describe(device), event: "resumed")
            } onServer: { client in
                let path = "/v1/devices/\(id)/resume"
                options.show(try await client.call(.POST, path, as: DeviceBody.self), event: "resumed")
            }
        }
    }

    struct Delete: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Delete a device with its channels and waiting messages.")
        @Argument(help: "The device's ID.") var id: String
        @OptionGroup var options: OperatorOptions

        func run() async throws {
            try await options.perform { domain in
                try await domain.devices.delete(try await domain.devices.find(try DeviceID.checked(id)))
            } onServer: { client in
                _ = try client.accepted(try await client.send(.DELETE, "/v1/devices/\(id)"))
            }
            options.printer.print(["event": "deleted", "id": .text(id)], otherwise: "deleted device \(id)")
        }
    }
}

extension OperatorOptions {
    fileprivate func show(_ device: DeviceBody, event: String?) {
        printer.print(
            [
                "event": event.map(OutputValue.text), "id": .text(device.id), "app": .text(device.app),
                "status": .text(device.status), "statusAt": .text(device.statusAt), "createdAt": .text(device.createdAt),
                "waiting": .number(Int64(device.waiting)), "channels": .number(Int64(device.channels.count)),
                "reason": device.reason.map(OutputValue.text), "platform": (device.push?.platform).map(OutputValue.text),
                "environment": (device.push?.environment).map(OutputValue.text),
                "user": device.user.map(OutputValue.text), "appVersion": device.appVersion.map(OutputValue.text),
                "locale": device.locale.map(OutputValue.text), "timeZone": device.timeZone.map(OutputValue.text),
            ],
            words: [
                event, device.id, device.app, device.status, device.reason, "since \(device.statusAt)",
                device.push.map { "\($0.platform) \($0.environment)" }, device.user, "\(device.waiting) waiting",
                "\(device.channels.count) channels", device.appVersion.map { "version \($0)" }, device.locale,
                device.timeZone,
            ])
    }
}
