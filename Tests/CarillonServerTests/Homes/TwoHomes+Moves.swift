import CarillonCore
import CarillonWire

@testable import CarillonServer

extension TwoHomes {
    /// A device with a channel.
    struct Phone: Sendable {
        let device: Device
        let credential: String
        let channel: PushChannel
        var shard: Shard { Shard(of: device.serial) }
    }

    struct NeverMoved: Error {}

    /// Registers a phone, at the first home.
    func phone() async throws -> Phone {
        let (device, credential) = try await domains[0].devices.register(app: app.id)
        return Phone(device: device, credential: credential.text, channel: try await channel(of: device).channel)
    }

    /// Sends a message to the home that has the phone. Repeats that while the phone moves.
    func send(to phone: Phone) async throws -> MessageID {
        let request = PublishRequest(body: [1], coding: ContentCoding(.identity), ttl: 60)
        while true {
            do {
                return try await domain(of: phone.device).publisher.publish(request, to: phone.channel).id
            } catch is StoreFault {
                try await Task.sleep(for: .milliseconds(1))
            }
        }
    }

    /// Tries once to move a shard to the other home.
    func tryMove(_ shard: Shard) async throws -> ShardMove.Result {
        let parties = (0..<2).map { domains[$0].participant(on: NodeNumber(Int64($0) + 1), at: $0) }
        let place = place(of: shard)
        return try await ShardMove(homes: homes, store: store).move(shard, from: parties[place], to: parties[1 - place])
    }

    /// Moves a shard to the other home. Tries again while there is work under way.
    func move(_ shard: Shard) async throws {
        for _ in 0..<100 {
            if try await tryMove(shard) == .moved { return }
        }
        throw NeverMoved()
    }
}
