import Foundation
import NIOCore

/// Starts nginx with Nchan, from Debian's packages, with its own configuration.
struct NchanSetup: Sendable {
    let scratch: ScratchDirectory
    private let nginx: String

    private static let module = "/usr/lib/nginx/modules/ngx_nchan_module.so"

    init(scratch: ScratchDirectory) throws(NotMeasured) {
        self.scratch = scratch
        let places = ["/usr/sbin/nginx", "/usr/local/sbin/nginx"]
        guard let nginx = places.first(where: FileManager.default.isExecutableFile),
            FileManager.default.fileExists(atPath: Self.module)
        else { throw NotMeasured("not installed (nginx-light, libnginx-mod-nchan)") }
        self.nginx = nginx
    }

    func start(isShared: Bool = false, fromOldest: Bool = false) async throws -> NchanPeer {
        let port = try freePort()
        let configuration = scratch.file("nginx.conf")
        try text(port: port).write(toFile: configuration, atomically: true, encoding: .utf8)
        let process = try ServerProcess.start(
            nginx, ["-p", scratch.path, "-c", configuration, "-e", scratch.file("nginx-error.log")],
            log: scratch.file("nginx.log"))
        let peer = NchanPeer(
            process: process, address: try SocketAddress(ipAddress: "127.0.0.1", port: port), isShared: isShared,
            fromOldest: fromOldest)
        try await Patience.ask(HTTPRequest.bytes("GET", "/ready"), peer)
        return peer
    }

    private func text(port: Int) -> String {
        """
        load_module \(Self.module);
        daemon off;
        worker_processes 2;
        pid \(scratch.file("nginx.pid"));
        error_log \(scratch.file("nginx-error.log")) error;
        events { worker_connections 16384; }
        http {
            access_log off;
            tcp_nodelay on;
            keepalive_requests 1000000000;
            keepalive_timeout 3600s;
            nchan_shared_memory_size 1024M;
            client_body_temp_path \(scratch.file("nginx-body"));
            proxy_temp_path \(scratch.file("nginx-proxy"));
            fastcgi_temp_path \(scratch.file("nginx-fastcgi"));
            uwsgi_temp_path \(scratch.file("nginx-uwsgi"));
            scgi_temp_path \(scratch.file("nginx-scgi"));
            server {
                listen 127.0.0.1:\(port) backlog=4096;
                location = /ready { return 200; }
                location ~ ^/pub/(\\w+)$ {
                    nchan_publisher http;
                    nchan_channel_id $1;
                    nchan_message_buffer_length 2000;
                    nchan_message_timeout 1h;
                }
                location ~ ^/new/(\\w+)$ {
                    nchan_subscriber websocket;
                    nchan_channel_id $1;
                    nchan_subscriber_first_message newest;
                }
                location ~ ^/all/(\\w+)$ {
                    nchan_subscriber websocket;
                    nchan_channel_id $1;
                    nchan_subscriber_first_message oldest;
                }
            }
        }
        """
    }
}
